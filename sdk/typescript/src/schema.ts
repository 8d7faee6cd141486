// Schemas whose static types are inferred. Types are gone at run time, so an
// author writes the schema once, as a value, and TypeScript reads the type off it.
//
// The host checks input and output against the JSON Schema. What is left for
// this side: filling in defaults, and turning integers into what was asked for.

import { InvalidInput } from "./errors.ts";

/** A JSON Schema, draft 2020-12. */
export type JsonSchema = Readonly<Record<string, unknown>> | boolean;

/** Whether a caller must give a property, may leave it out, or gets the default for it. */
export type Presence = "required" | "optional" | "default";

// What is to be done to a value from the host. `exact` says that the frame may hold bigint.
type Read = (value: unknown, path: string, exact: boolean) => unknown;

/** A JSON Schema that knows its static type. Made by {@link t}. */
export class Schema<T, P extends Presence = "required"> {
  /** The static types; there is nothing here at run time. */
  declare readonly static: { type: T; presence: P };
  readonly json: JsonSchema;
  readonly presence: Presence;
  /** @internal */ readonly read: Read | undefined;
  /** @internal Whether `read` matters for frames without bigint too. */
  readonly always: boolean;

  /** @internal */
  constructor(json: JsonSchema, presence: Presence, read?: Read, always = false) {
    this.json = json;
    this.presence = presence;
    this.read = read;
    this.always = always;
  }
}

/** The properties of an object, each with its schema. */
export type Fields = Readonly<Record<string, Schema<unknown, Presence>>>;

/** The static type of a schema: `type Row = Infer<typeof row>`. */
export type Infer<S extends Schema<unknown, Presence>> = S["static"]["type"];

type OptionalKeys<F extends Fields> = { [K in keyof F]: F[K]["static"]["presence"] extends "optional" ? K : never }[keyof F];

/** The static type of an object with these properties, as a handler sees it: defaults are filled in. */
export type ObjectOf<F extends Fields> = {
  [K in keyof ({ [R in Exclude<keyof F, OptionalKeys<F>>]: 0 } & { [O in OptionalKeys<F>]?: 0 })]: F[K]["static"]["type"];
};

/** Keywords that any schema may have. A property with a default need not be given. */
export interface Options<T> {
  title?: string;
  description?: string;
  examples?: readonly T[];
  deprecated?: boolean;
  default?: T;
}

/** Keywords for text. */
export interface StringOptions extends Options<string> {
  minLength?: number;
  maxLength?: number;
  /** A regular expression in the common subset of ECMA-262 and RE2. */
  pattern?: string;
  format?: string;
}

/** Keywords for numbers. */
export interface NumberOptions<T = number> extends Options<T> {
  minimum?: T;
  maximum?: T;
  exclusiveMinimum?: T;
  exclusiveMaximum?: T;
  multipleOf?: T;
}

/** Keywords for lists. */
export interface ArrayOptions<T> extends Options<readonly T[]> {
  minItems?: number;
  maxItems?: number;
  uniqueItems?: boolean;
}

/** Keywords for records. */
export interface RecordOptions<T> extends Options<Readonly<Record<string, T>>> {
  minProperties?: number;
  maxProperties?: number;
}

type PresenceOf<O> = O extends { default: unknown } ? "default" : "required";
type Item = Schema<unknown, Presence>;

function make<T, O>(keywords: Record<string, unknown>, options: O | undefined, read?: Read, always = false): Schema<T, PresenceOf<O>> {
  const json = { ...keywords, ...options };
  return new Schema(json, "default" in json ? "default" : "required", read, always);
}

const readNumber: Read = (value) => (typeof value === "bigint" ? Number(value) : value);

const readInteger: Read = (value, path) => {
  if (typeof value === "bigint") throw new InvalidInput(`${path}: ${value} is larger than this operation can take`);
  return value;
};

const readBigint: Read = (value) => (typeof value === "number" && Number.isInteger(value) ? BigInt(value) : value);

function readItems(item: Item): Read | undefined {
  const { read } = item;
  if (read === undefined) return undefined;
  return (value, path, exact) =>
    Array.isArray(value) ? value.map((element, index) => read(element, `${path}[${index}]`, exact)) : value;
}

function readValues(item: Item): Read | undefined {
  const { read } = item;
  if (read === undefined) return undefined;
  return (value, path, exact) => {
    if (!isObject(value)) return value;
    for (const key of Object.keys(value)) assign(value, key, read(value[key], `${path}.${key}`, exact));
    return value;
  };
}

function readFields(fields: readonly (readonly [string, Item])[]): Read {
  const touched = fields.filter(([, field]) => field.read !== undefined || field.presence === "default");
  const always = touched.filter(([, field]) => field.always || field.presence === "default");
  return (value, path, exact) => {
    if (!isObject(value)) return value;
    for (const [key, field] of exact ? touched : always) {
      if (Object.hasOwn(value, key)) {
        if (field.read !== undefined && (exact || field.always)) value[key] = field.read(value[key], join(path, key), exact);
      } else if (field.presence === "default") {
        value[key] = defaultOf(field);
      }
    }
    return value;
  };
}

function defaultOf(field: Item): unknown {
  const value = (field.json as { default?: unknown }).default;
  return typeof value === "object" && value !== null ? structuredClone(value) : value;
}

function objectOf<F extends Fields, O>(fields: F, options?: O): Schema<ObjectOf<F>, PresenceOf<O>> {
  const entries = Object.entries(fields);
  for (const [key] of entries) if (key === "__proto__") throw new TypeError("a property cannot be called __proto__");
  const required = entries.filter(([, field]) => field.presence === "required").map(([key]) => key);
  const keywords = {
    type: "object",
    properties: Object.fromEntries(entries.map(([key, field]) => [key, field.json])),
    ...(required.length > 0 ? { required } : {}),
    additionalProperties: false,
  };
  const matters = entries.some(([, field]) => field.read !== undefined || field.presence === "default");
  const always = entries.some(([, field]) => field.always || field.presence === "default");
  return make(keywords, options, matters ? readFields(entries) : undefined, always);
}

/**
 * Builds schemas: `t.object({ text: t.string(), limit: t.integer({ default: 10 }) })`.
 *
 * Objects are closed. A property is required unless it has a default, which is
 * filled in before the handler runs, or is {@link t.optional}.
 */
export const t = {
  string: <const O extends StringOptions>(options?: O) => make<string, O>({ type: "string" }, options),

  /** An integer that a number can hold. A call with a larger one fails with invalid_input; see {@link t.bigint}. */
  integer: <const O extends NumberOptions>(options?: O) => make<number, O>({ type: "integer" }, options, readInteger),

  /** An integer of any size. */
  bigint: <const O extends NumberOptions<bigint>>(options?: O) => make<bigint, O>({ type: "integer" }, options, readBigint, true),

  number: <const O extends NumberOptions>(options?: O) => make<number, O>({ type: "number" }, options, readNumber),

  boolean: <const O extends Options<boolean>>(options?: O) => make<boolean, O>({ type: "boolean" }, options),

  array: <T, const O extends ArrayOptions<T>>(item: Schema<T, Presence>, options?: O) =>
    make<T[], O>({ type: "array", items: item.json }, options, readItems(item), item.always),

  object: <F extends Fields, const O extends Options<unknown>>(fields: F, options?: O) => objectOf(fields, options),

  /** An object of any keys with values of one kind. */
  record: <T, const O extends RecordOptions<T>>(value: Schema<T, Presence>, options?: O) =>
    make<Record<string, T>, O>({ type: "object", additionalProperties: value.json }, options, readValues(value), value.always),

  /** Exactly this value, or one of these. */
  literal: <const V extends readonly [Scalar, ...Scalar[]]>(...values: V): Schema<V[number]> =>
    new Schema(values.length === 1 ? { const: values[0] } : { enum: values }, "required"),

  /** One of these values. */
  enum: <const V extends Scalar, const O extends Options<V>>(values: readonly V[], options?: O) => make<V, O>({ enum: values }, options),

  /** Any of these kinds. Throws TypeError for a kind with defaults or bigint inside: which of them would apply? */
  union: <const S extends readonly Item[]>(...kinds: S): Schema<S[number]["static"]["type"]> => {
    if (kinds.some((kind) => kind.always)) throw new TypeError("t.union: a kind with defaults or bigint inside cannot be told apart");
    return new Schema({ anyOf: kinds.map((kind) => kind.json) }, "required");
  },

  nullable: <T, const O extends Options<T | null>>(item: Schema<T, Presence>, options?: O) =>
    make<T | null, O>({ anyOf: [item.json, { type: "null" }] }, options, item.read, item.always),

  /** A property that may be left out. */
  optional: <T>(item: Schema<T, Presence>): Schema<T, "optional"> => new Schema(item.json, "optional", item.read, item.always),

  /** Any JSON value, typed unknown. Integers beyond 2^53 - 1 are bigint in it. */
  any: <const O extends Options<unknown>>(options?: O) => make<unknown, O>({}, options),

  /** A JSON Schema written by hand, passed on as it is. The type is yours to state. */
  json: <T = unknown>(schema: JsonSchema): Schema<T> => new Schema(schema, "required"),
};

/** A value that a schema can name. */
export type Scalar = string | number | boolean | null;

/** @internal Makes the check that comes before a handler: an object with every required property and no unknown one. */
export function inputReader(schema: Item): (input: unknown, exact: boolean) => unknown {
  const { properties, required, additionalProperties } = schema.json as {
    properties?: object;
    required?: readonly string[];
    additionalProperties?: unknown;
  };
  const known = additionalProperties === false ? new Set(Object.keys(properties ?? {})) : undefined;
  const { read, always } = schema;
  return (input, exact) => {
    if (!isObject(input)) throw new InvalidInput("the input is not an object");
    if (required) for (const key of required) if (!Object.hasOwn(input, key)) throw new InvalidInput(`${key} is missing`);
    if (known) for (const key of Object.keys(input)) if (!known.has(key)) throw new InvalidInput(`${key} is not an argument of this operation`);
    return read !== undefined && (exact || always) ? read(input, "", exact) : input;
  };
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function join(path: string, key: string): string {
  return path === "" ? key : `${path}.${key}`;
}

// A key of a record may be __proto__, which a plain assignment would not store.
function assign(object: Record<string, unknown>, key: string, value: unknown): void {
  if (key === "__proto__") Object.defineProperty(object, key, { value, writable: true, enumerable: true, configurable: true });
  else object[key] = value;
}
