/** The value that a form puts together, and what the host said is wrong with it. */
import { copy, isObject, type Json } from "../json.ts";
import { placesOf, without, type Fault } from "./fault.ts";
import { at, initial } from "./shape.ts";

export class Form {
  readonly schema: Json;
  /** What is put together; undefined where there is nothing yet. */
  value = $state.raw<Json | undefined>(undefined);
  /** What the host said of the value as it was sent. */
  faults = $state.raw<Fault[]>([]);

  constructor(schema: Json, begin?: Json) {
    this.schema = schema;
    this.value = begin === undefined ? initial(schema, schema, true) : copy(begin);
  }

  get(pointer: string): Json | undefined {
    return this.value === undefined ? undefined : at(this.value, pointer);
  }

  /** Puts a value at a place, or takes away what is there. What the host said of the place counts no more. */
  put(pointer: string, value: Json | undefined): void {
    this.value = put(this.value, pointer.split("/").slice(1), value);
    if (this.faults.length > 0) this.faults = without(this.faults, pointer);
  }

  /** Returns what is wrong at a place itself. */
  at(pointer: string): string[] {
    return this.faults.filter((f) => placesOf(f).includes(pointer)).map((f) => f.detail);
  }
}

function put(here: Json | undefined, path: string[], value: Json | undefined): Json | undefined {
  const [first, ...rest] = path;
  if (first === undefined) return value;
  const name = first.replaceAll("~1", "/").replaceAll("~0", "~");
  if (Array.isArray(here)) {
    const next = [...here];
    const item = put(here[Number(name)], rest, value);
    if (item === undefined) next.splice(Number(name), 1);
    else next[Number(name)] = item;
    return next;
  }
  const next = isObject(here) ? { ...here } : {};
  const member = put(next[name], rest, value);
  if (member === undefined) delete next[name];
  else next[name] = member;
  return next;
}

/** The id of the field for a place, to which a summary of errors links. */
export function fieldId(form: string, pointer: string): string {
  return `${form}-${pointer.replace(/[^A-Za-z0-9]/gu, (c) => `_${(c.codePointAt(0) ?? 0).toString(16)}_`)}`; // an id has no spaces, and each place its own
}
