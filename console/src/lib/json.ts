/**
 * JSON without loss: a number that a JavaScript number cannot hold as it was
 * written keeps its text, and the order of members stays that of the document.
 */

/** A number as the document spells it, where a JavaScript number would change it. */
export class Exact {
  readonly text: string;
  constructor(text: string) {
    this.text = text;
  }
  toString(): string {
    return this.text;
  }
}

/** A JSON value. */
export type Json = null | boolean | number | string | Exact | Json[] | { [name: string]: Json };

/** Reports whether a value is a number, however it is held. */
export function isNumber(value: unknown): value is number | Exact {
  return typeof value === "number" || value instanceof Exact;
}

/**
 * Converts a number to a JavaScript number, which may round it. Use it to calculate, for example
 * the length of a bar. Never show or send the result.
 */
export function near(value: unknown): number {
  return isNumber(value) ? Number(String(value)) : NaN;
}

/** Writes a number for people, with all of its digits: 9,007,199,254,740,993 and 0.1000. */
export function numeral(value: unknown): string {
  const [, sign, whole, rest] = /^(-?)(\d+)(.*)$/s.exec(String(value)) ?? ["", "", String(value), ""];
  return `${sign}${(whole ?? "").replace(/\B(?=(?:\d{3})+$)/g, ",")}${rest}`;
}

/** Rounds a number, such as a score, to so many decimal places. */
export function rounded(value: unknown, places: number): string {
  return near(value).toFixed(places);
}

/** A JSON object. */
export type JsonObject = { [name: string]: Json };

/** Reports whether a value is a JSON object: no array, no null, no exact number. */
export function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value) && !(value instanceof Exact);
}

/** What is wrong with a JSON text, and at which of its characters. */
export class JsonError extends Error {
  readonly at: number;
  constructor(what: string, at: number) {
    super(what);
    this.at = at;
  }
}

const maxDepth = 200;

/** Reads a JSON text. Throws a JsonError. Of members with one name the last counts, as in the host. */
export function parse(text: string): Json {
  let at = 0;
  const space = (): void => {
    while (at < text.length && " \t\n\r".includes(text.charAt(at))) at++;
  };
  const fail = (what: string): never => {
    throw new JsonError(what, at);
  };
  const word = (name: string, value: Json): Json => {
    if (!text.startsWith(name, at)) fail(`${name} was expected`);
    at += name.length;
    return value;
  };
  const string = (): string => {
    const begin = at++;
    for (; at < text.length; at++) {
      const c = text.charCodeAt(at);
      if (c === 0x5c) at++;
      else if (c === 0x22) {
        at++;
        try {
          return JSON.parse(text.slice(begin, at)) as string;
        } catch {
          at = begin;
          return fail("a text has characters that it cannot have");
        }
      }
    }
    return fail("a text does not end");
  };
  const number = (): Json => {
    const found = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
    found.lastIndex = at;
    const match = found.exec(text);
    if (match === null) return fail("a value was expected");
    at = found.lastIndex;
    const value = Number(match[0]);
    return String(value) === match[0] ? value : new Exact(match[0]);
  };
  const value = (depth: number): Json => {
    if (depth > maxDepth) fail(`the value is nested deeper than ${maxDepth} levels`);
    space();
    switch (text.charAt(at)) {
      case "{": {
        const object: JsonObject = Object.create(null) as JsonObject;
        at++;
        space();
        if (text.charAt(at) === "}") {
          at++;
          return object;
        }
        for (;;) {
          space();
          if (text.charAt(at) !== '"') fail("the name of a member was expected");
          const name = string();
          space();
          if (text.charAt(at++) !== ":") fail("a colon was expected");
          object[name] = value(depth + 1);
          space();
          const next = text.charAt(at++);
          if (next === "}") return object;
          if (next !== ",") {
            at--;
            fail("a comma or the end of the object was expected");
          }
        }
      }
      case "[": {
        const list: Json[] = [];
        at++;
        space();
        if (text.charAt(at) === "]") {
          at++;
          return list;
        }
        for (;;) {
          list.push(value(depth + 1));
          space();
          const next = text.charAt(at++);
          if (next === "]") return list;
          if (next !== ",") {
            at--;
            fail("a comma or the end of the list was expected");
          }
        }
      }
      case '"':
        return string();
      case "t":
        return word("true", true);
      case "f":
        return word("false", false);
      case "n":
        return word("null", null);
      default:
        return number();
    }
  };
  const all = value(0);
  space();
  if (at < text.length) fail("there is more after the value");
  return all;
}

/** Writes a value as JSON. indent is the number of spaces a level; 0 is one line. */
export function stringify(value: Json, indent = 0): string {
  const write = (v: Json, lead: string): string => {
    if (v instanceof Exact) return v.text;
    if (typeof v !== "object" || v === null) return JSON.stringify(v);
    const inner = lead + " ".repeat(indent);
    const parts = Array.isArray(v)
      ? v.map((item) => write(item, inner))
      : Object.entries(v).map(([name, item]) => JSON.stringify(name) + (indent > 0 ? ": " : ":") + write(item, inner));
    const [open, close] = Array.isArray(v) ? ["[", "]"] : ["{", "}"];
    if (parts.length === 0) return open + close;
    return indent > 0 ? `${open}\n${inner}${parts.join(`,\n${inner}`)}\n${lead}${close}` : open + parts.join(",") + close;
  };
  return write(value, "");
}

/** Reports whether two values are equal. Numbers are compared as they are written, members without their order. */
export function equal(a: Json | undefined, b: Json | undefined): boolean {
  if (a === b) return true;
  if (a === undefined || b === undefined || a === null || b === null) return false;
  if (a instanceof Exact || b instanceof Exact) return String(a) === String(b);
  if (Array.isArray(a)) return Array.isArray(b) && a.length === b.length && a.every((v, i) => equal(v, b[i]));
  if (!isObject(a) || !isObject(b)) return false;
  const names = Object.keys(a);
  return names.length === Object.keys(b).length && names.every((name) => name in b && equal(a[name], b[name]));
}

/** Returns a value as a plain one, as which it is edited: a copy that shares nothing. */
export function copy<T extends Json>(value: T): T {
  if (value instanceof Exact || typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map((v) => copy(v)) as T;
  const object = Object.create(null) as JsonObject;
  for (const [name, v] of Object.entries(value)) object[name] = copy(v);
  return object as T;
}
