/**
 * Writes a JSON value for the person who consents to it: one line per leaf, with its path and its
 * value. The Go package internal/base/consent writes the same lines. Both read characters.json
 * there, and both are tested against its testdata/lines.json.
 */
import listed from "../../../internal/base/consent/characters.json";
import { Exact, isObject, type Json } from "./json.ts";

/** A value that has no members or items: a scalar, an empty object or an empty list. */
export interface Leaf {
  /** payments[0].recipient; $ for the whole value. */
  path: string;
  /** The value as JSON. Strings are quoted. */
  text: string;
}

type Span = readonly [from: number, to: number];

interface Alphabet {
  letters: Span[];
  wide: boolean; // it stands beside others in one word: Han, Kana, Hangul
  leftward: boolean; // it is written from right to left
}

const spans = (text: string): Span[] =>
  text.split(" ").map((word): Span => {
    const [from, to] = word.split("-");
    return [parseInt(from ?? "", 16), parseInt(to ?? from ?? "", 16)];
  });

const latin: Alphabet = { letters: spans(listed.letters.Latin), wide: false, leftward: false };
const alphabets: Alphabet[] = [latin, ...Object.entries(listed.letters).flatMap(([name, text]) => (name === "Latin" ? [] : [{ letters: spans(text), wide: name === "Wide", leftward: listed.leftward.includes(name) }]))];
const signs = spans(listed.signs);
const alike = new Set(listed.alike); // letters that look like ASCII
const within = (all: Span[], code: number): boolean => all.some(([from, to]) => code >= from && code <= to);
const isASCII = (c: string): boolean => c <= "\u007f";

/** Returns which alphabet a letter is of; undefined for a character that is no letter. */
function alphabetOf(c: string): Alphabet | undefined {
  if (isASCII(c)) return /[a-z]/i.test(c) ? latin : undefined;
  const code = c.codePointAt(0) ?? 0;
  return alphabets.find((a) => within(a.letters, code));
}

const maxSpaces = 4; // that follow each other as they are

/** A word: letters that stand together, from one character of a text up to another. */
interface Word {
  from: number;
  to: number;
  mixed: boolean; // it has letters of several alphabets
}

/** Returns the words of a text, whose characters are of these alphabets. */
function words(of: (Alphabet | undefined)[]): Word[] {
  const found: Word[] = [];
  for (const [i, a] of of.entries()) {
    const last = found.at(-1);
    if (a === undefined) continue;
    if (last?.to === i && of[last.from]?.wide === a.wide) {
      last.to++;
      last.mixed ||= a !== of[last.from];
    } else found.push({ from: i, to: i + 1, mixed: false });
  }
  return found;
}

/** Returns which letters stand in a word of several alphabets, and are not ASCII. */
export function strangers(text: string[]): boolean[] {
  const marked = new Array<boolean>(text.length).fill(false);
  for (const w of words(text.map(alphabetOf))) for (let i = w.from; i < w.to; i++) marked[i] = w.mixed && !isASCII(text[i] ?? "");
  return marked;
}

/** Returns which characters of a text are escaped; in a name, letters from right to left always are. */
function marks(text: string[], name: boolean): boolean[] {
  const of = text.map(alphabetOf);
  const ordered = name || text.some((c, i) => (c >= "0" && c <= "9") || of[i]?.leftward === false);
  let spaces = 0;
  const marked = text.map((c, i) => {
    spaces = c === " " ? spaces + 1 : 0;
    return of[i] === undefined && (c < " " || spaces > maxSpaces || (c > "~" && !within(signs, c.codePointAt(0) ?? 0)));
  });
  for (const w of words(of)) {
    const same = text.slice(w.from, w.to).every((c) => alike.has(c));
    for (let i = w.from; i < w.to; i++) marked[i] = !isASCII(text[i] ?? "") && (w.mixed || same || (ordered && of[i]?.leftward === true));
  }
  return marked;
}

const short: Record<string, string> = { '"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t" };

/** Writes a character as JSON escapes it. */
function escape(c: string): string {
  return [...Array(c.length).keys()].map((i) => `\\u${c.charCodeAt(i).toString(16).padStart(4, "0")}`).join("");
}

/** Returns a string as JSON. Characters that a reader could take for others are escaped. */
export function quote(text: string, name = false): string {
  const characters = [...text];
  const marked = marks(characters, name);
  return `"${characters.map((c, i) => short[c] ?? (marked[i] === true ? escape(c) : c)).join("")}"`;
}

/** Returns the path of a member of the object at a path. */
function member(path: string, name: string): string {
  if (!/^[A-Za-z_][A-Za-z0-9_-]{0,63}$/.test(name)) return `${path}[${quote(name, true)}]`;
  return path === "" ? name : `${path}.${name}`;
}

/** Returns the leaves of a value in their order. */
export function leaves(value: Json, path = "", found: Leaf[] = []): Leaf[] {
  const add = (text: string): void => {
    found.push({ path: path === "" ? "$" : path, text });
  };
  if (Array.isArray(value)) {
    if (value.length === 0) add("[]");
    for (const [i, item] of value.entries()) leaves(item, `${path}[${i}]`, found);
  } else if (isObject(value)) {
    const entries = Object.entries(value);
    if (entries.length === 0) add("{}");
    for (const [name, item] of entries) leaves(item, member(path, name), found);
  } else add(typeof value === "string" ? quote(value) : value instanceof Exact ? value.text : String(value));
  return found;
}

/** A leaf that differs between two values, or that only one of them has. */
export interface Change {
  path: string;
  before: string | undefined;
  after: string | undefined;
}

/** Returns the leaves that are different between two values, all of them. undefined is no value. */
export function changes(before: Json | undefined, after: Json | undefined): Change[] {
  const old = new Map((before === undefined ? [] : leaves(before)).map((leaf) => [leaf.path, leaf.text]));
  const now = new Map((after === undefined ? [] : leaves(after)).map((leaf) => [leaf.path, leaf.text]));
  return [...new Set([...old.keys(), ...now.keys()])].map((path) => ({ path, before: old.get(path), after: now.get(path) })).filter((c) => c.before !== c.after);
}

/** A part of a leaf. A marked one is an escape of a character that is not what it looks like. */
export interface Piece {
  text: string;
  marked: boolean;
}

/**
 * Splits a leaf into lines, and each line at its escapes. A text goes on after each line break
 * on a line of its own, with quotes of its own, so that no line of it passes for another leaf.
 */
export function pieces(text: string): Piece[][] {
  const quoted = text.startsWith('"');
  const lines: Piece[][] = [[]];
  const parts = [...text.matchAll(/\\u[0-9a-f]{4}|\\.|[^\\]+/gsu)].map(([part]) => part);
  for (const [i, part] of parts.entries()) {
    lines.at(-1)?.push({ text: part, marked: part.startsWith("\\u") });
    if (!quoted || part !== "\\n" || parts[i + 1] === '"') continue;
    lines.at(-1)?.push({ text: '"', marked: false });
    lines.push([{ text: '"', marked: false }]);
  }
  return lines;
}
