// JSON as the protocol has it: I-JSON (RFC 7493), with integers of any size.
//
// JSON.parse and JSON.stringify do the work. Integers beyond 2^53 - 1, which a
// number cannot hold, are bigint in memory: they travel through JSON.parse as
// marked strings, a detour taken only by lines that show such digits.

import { PluginError } from "./errors.ts";

// Unknown to the author of a line, so that no text can pass for a number.
const marker = `bigint-${Math.random().toString(36).slice(2)}:`;
const marked = new RegExp(`"${marker}(-?\\d+)"`, "g");
const token = /"[^"\\]*(?:\\.[^"\\]*)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g;

/** Tells whether {@link parseExact} is needed: a number in the line may be an integer of 16 digits or more. */
export function hasLongIntegers(line: string): boolean {
  // A run of 16 digits covers some position of every 16; the others need no look.
  for (let at = 15; at < line.length; at += 16) {
    if (!isDigit(line.charCodeAt(at))) continue;
    let start = at;
    let end = at + 1;
    while (isDigit(line.charCodeAt(start - 1))) start--;
    while (isDigit(line.charCodeAt(end))) end++;
    if (end - start >= 16 && ":,[- \t".includes(line.charAt(start - 1))) return true;
    at = end; // the loop goes on 16 later: what lies between is too short
  }
  return false;
}

function isDigit(code: number): boolean {
  return code >= 48 && code <= 57;
}

/** Parses like JSON.parse, yet integers that a number cannot hold become bigint. */
export function parseExact(line: string): unknown {
  const text = line.replace(token, (found) =>
    found.length > 15 && /^-?\d+$/.test(found) && !Number.isSafeInteger(Number(found)) ? `"${marker}${found}"` : found,
  );
  return JSON.parse(text, (_key, value: unknown) =>
    typeof value === "string" && value.startsWith(marker) ? BigInt(value.slice(marker.length)) : value,
  );
}

// A frame may nest 64 deep; this leaves room for the envelope around a value.
const maxDepth = 61;

/**
 * Encodes a value that a plugin hands out, so that the host can read it.
 *
 * undefined is null, as JSON.stringify has it in arrays; bigint is written as
 * an integer; toJSON is honoured. What no JSON can carry (NaN, Infinity, a
 * cycle, a lone surrogate) or what nests too deep throws a {@link PluginError}
 * with the code INVALID_RESULT.
 */
export function encode(value: unknown): string {
  let text: string | undefined;
  try {
    text = JSON.stringify(value);
  } catch {
    text = encodeExact(value);
  }
  if (text === undefined) return "null";
  // The checks look at the text first: it is quick to search, and hardly ever needs the second look.
  if (text.includes("null")) refuseNonFinite(value);
  if (text.includes("\\ud") && /(?<!\\)(?:\\\\)*\\ud[89a-f]/.test(text)) throw invalid("a text holds half of a surrogate pair");
  if (tooDeep(text)) throw invalid(`it nests deeper than ${maxDepth} levels`);
  return text;
}

function encodeExact(value: unknown): string | undefined {
  try {
    const text: string | undefined = JSON.stringify(value, (_key, item: unknown) =>
      typeof item === "bigint" ? marker + item.toString() : item,
    );
    return text?.replace(marked, "$1");
  } catch (cause) {
    throw invalid(cause instanceof Error ? (cause.message.split("\n")[0] ?? "") : "toJSON threw", cause);
  }
}

// JSON.stringify writes null for these, which would pass as an answer.
function refuseNonFinite(value: unknown): void {
  if (typeof value === "number") {
    if (!Number.isFinite(value)) throw invalid(`it holds ${value}`);
  } else if (Array.isArray(value)) {
    for (const item of value) refuseNonFinite(item);
  } else if (typeof value === "object" && value !== null && !("toJSON" in value)) {
    for (const item of Object.values(value)) refuseNonFinite(item);
  }
}

function tooDeep(text: string): boolean {
  let opened = 0;
  for (const bracket of ["{", "["]) {
    for (let at = text.indexOf(bracket); at !== -1 && opened <= maxDepth; at = text.indexOf(bracket, at + 1)) opened++;
  }
  if (opened <= maxDepth) return false;
  let depth = 0;
  for (const [found] of text.matchAll(/"[^"\\]*(?:\\.[^"\\]*)*"|[[{}\]]/g)) {
    if (found === "{" || found === "[") {
      if (++depth > maxDepth) return true;
    } else if (found === "}" || found === "]") depth--;
  }
  return false;
}

function invalid(why: string, cause?: unknown): PluginError {
  return new PluginError(`the plugin's value cannot be written as JSON: ${why}`, { code: "INVALID_RESULT", cause });
}

/** Cuts a text to so many bytes of well-formed UTF-8. */
export function bounded(text: string, bytes: number): string {
  const whole = text.toWellFormed();
  if (whole.length * 3 <= bytes || Buffer.byteLength(whole) <= bytes) return whole;
  return Buffer.from(whole.slice(0, bytes)).toString("utf8", 0, bytes).replace(/\uFFFD+$/, "");
}
