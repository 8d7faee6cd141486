/** Text from strangers, times and sizes, as people read them. */
import { strangers } from "./consent.ts";
import { near } from "./json.ts";

/** A part of a text. An odd one is a character that is not seen or misleads, by its name. */
export interface Part {
  text: string;
  odd: boolean;
}

const names: Record<number, string> = {
  0x00a0: "NO-BREAK SPACE", 0x00ad: "SOFT HYPHEN", 0x034f: "COMBINING GRAPHEME JOINER", 0x061c: "ARABIC LETTER MARK",
  0x115f: "HANGUL CHOSEONG FILLER", 0x1160: "HANGUL JUNGSEONG FILLER", 0x180e: "MONGOLIAN VOWEL SEPARATOR",
  0x200b: "ZERO WIDTH SPACE", 0x200c: "ZERO WIDTH NON-JOINER", 0x200d: "ZERO WIDTH JOINER",
  0x200e: "LEFT-TO-RIGHT MARK", 0x200f: "RIGHT-TO-LEFT MARK", 0x2028: "LINE SEPARATOR", 0x2029: "PARAGRAPH SEPARATOR",
  0x202a: "LEFT-TO-RIGHT EMBEDDING", 0x202b: "RIGHT-TO-LEFT EMBEDDING", 0x202c: "POP DIRECTIONAL FORMATTING",
  0x202d: "LEFT-TO-RIGHT OVERRIDE", 0x202e: "RIGHT-TO-LEFT OVERRIDE", 0x2060: "WORD JOINER",
  0x2066: "LEFT-TO-RIGHT ISOLATE", 0x2067: "RIGHT-TO-LEFT ISOLATE", 0x2068: "FIRST STRONG ISOLATE", 0x2069: "POP DIRECTIONAL ISOLATE",
  0x3164: "HANGUL FILLER", 0xfeff: "ZERO WIDTH NO-BREAK SPACE", 0xffa0: "HALFWIDTH HANGUL FILLER",
};

// Control characters but tab and line feed, all format characters, fillers, odd spaces,
// variation selectors, tags, private use and what is no character.
const odd = /[\u0000-\u0008\u000b-\u001f\u007f-\u00a0\u034f\u115f\u1160\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\u3164\uffa0\p{Cf}\p{Co}\p{Cn}\p{Cs}\u{fe00}-\u{fe0f}\u{e0100}-\u{e01ef}]/u;

/** Returns what a character is called: its number, and its name where people may know it. */
function called(code: number): string {
  const number = `U+${code.toString(16).toUpperCase().padStart(4, "0")}`;
  const name = names[code];
  return name === undefined ? number : `${number} ${name}`;
}

/** Returns what the character of an escape of JSON is called. */
export function nameOf(escape: string): string {
  return called(parseInt(escape.slice(2), 16));
}

/**
 * Splits a text at the characters that are not seen or mislead, each of which is spelt: those
 * that are odd by themselves, and letters of a second alphabet within a word.
 */
export function spell(text: string): Part[] {
  const parts: Part[] = [];
  const characters = [...text];
  const mixed = strangers(characters);
  let plain = "";
  const flush = (): void => {
    if (plain !== "") parts.push({ text: plain, odd: false });
    plain = "";
  };
  for (const [i, c] of characters.entries()) {
    if (mixed[i] !== true && !odd.test(c)) {
      plain += c;
      continue;
    }
    flush();
    parts.push({ text: called(c.codePointAt(0) ?? 0), odd: true });
  }
  flush();
  return parts.length === 0 ? [{ text: "", odd: false }] : parts;
}

/** Returns how many bytes there are, for people, and exactly. */
export function size(bytes: number): string {
  if (near(bytes) < 1024) return `${bytes} B`;
  let value = near(bytes);
  let unit = "B";
  for (unit of ["KiB", "MiB", "GiB", "TiB"]) {
    value /= 1024;
    if (value < 1024) break;
  }
  return `${value.toFixed(value < 10 ? 1 : 0)} ${unit}`;
}

const stamps = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });
const zone = new Intl.DateTimeFormat("en", { timeZoneName: "shortOffset" });

/** Returns a time with its zone: Nov 23, 2026, 9:14:05 PM GMT+1. */
export function stamp(at: string): string {
  const date = new Date(at);
  if (Number.isNaN(date.getTime())) return at;
  const offset = zone.formatToParts(date).find((part) => part.type === "timeZoneName")?.value ?? "";
  return `${stamps.format(date)} ${offset}`;
}

const units: [limit: number, seconds: number, name: Intl.RelativeTimeFormatUnit][] = [
  [60, 1, "second"], [3600, 60, "minute"], [86_400, 3600, "hour"], [86_400 * 30, 86_400, "day"],
  [86_400 * 365, 86_400 * 30, "month"], [Infinity, 86_400 * 365, "year"],
];
const relative = new Intl.RelativeTimeFormat("en", { numeric: "auto" });

/** Returns how far a time is from now: 3 minutes ago, in 2 hours. */
export function ago(at: string, now: number): string {
  let seconds = (new Date(at).getTime() - now) / 1000;
  if (Number.isNaN(seconds)) return at;
  if (seconds > 0 && seconds < 3) seconds = 0; // it happened after the clock of the page last moved
  for (const [limit, unit, name] of units) {
    if (Math.abs(seconds) < limit) return relative.format(Math.round(seconds / unit), name);
  }
  return at;
}

/** Shortens an id for a table, where the whole one is in its title. */
export function short(id: string): string {
  return id.length > 14 ? `${id.slice(0, 8)}…` : id;
}
