/**
 * What a form shows of a JSON Schema. Schemas are strangers': whatever is not
 * understood becomes a field for JSON, and what the value may be is the host's to
 * say. Nothing here refuses a value.
 */
import { equal, isNumber, isObject, near, type Json, type JsonObject } from "../json.ts";

/** Hints of a schema for forms (contract of Shu, Schema UI Hints). */
export interface Hints {
  hidden: boolean;
  help: string;
  placeholder: string;
  labels: Record<string, string>;
  optionHelp: Record<string, string>;
  showWhen: Json | undefined;
  /** Where the value comes from when it is left out: identity:KEY, secret:NAME or env:NAME. */
  binding: string;
}

/** One alternative of a oneOf or anyOf. */
export interface Alternative {
  title: string;
  schema: Json;
}

/** A property of an object. */
export interface Property {
  name: string;
  schema: Json;
  required: boolean;
}

/** What a field for a value looks like. */
export type Shape = Common &
  (
    | { kind: "text"; format: string; pattern: string; long: boolean; secret: boolean; minLength: number; maxLength: number | undefined }
    | { kind: "number"; integer: boolean; minimum: Json | undefined; maximum: Json | undefined }
    | { kind: "boolean" }
    | { kind: "null" }
    | { kind: "enum"; values: Json[] }
    | { kind: "const"; value: Json }
    | { kind: "object"; properties: Property[]; open: Json | undefined }
    | { kind: "array"; item: Json; prefix: Json[]; least: number; most: number | undefined }
    | { kind: "choice"; alternatives: Alternative[] }
    | { kind: "json" }
  );

/** What every field has. */
export interface Common {
  title: string;
  description: string;
  default: Json | undefined;
  examples: Json[];
  nullable: boolean;
  deprecated: boolean;
  readOnly: boolean;
  hints: Hints;
}

const maxReferences = 32;
const maxAlternatives = 50;
const maxProperties = 500;

/** Follows the references of a schema within its document, and joins its allOf. */
export function resolve(schema: Json, root: Json): JsonObject {
  let here = isObject(schema) ? schema : {};
  const seen = new Set<string>();
  while (typeof here["$ref"] === "string" && seen.size < maxReferences) {
    const reference = here["$ref"];
    if (seen.has(reference)) return {};
    seen.add(reference);
    const target = lookUp(reference, root);
    if (!isObject(target)) return without(here, "$ref");
    here = { ...target, ...without(here, "$ref") };
    if (isObject(target) && typeof target["$ref"] === "string") here["$ref"] = target["$ref"];
  }
  const all = here["allOf"];
  if (!Array.isArray(all) || all.length > maxAlternatives) return here;
  return all.reduce<JsonObject>((joined, part) => join(joined, resolve(part, root)), without(here, "allOf"));
}

function without(schema: JsonObject, name: string): JsonObject {
  const rest = { ...schema };
  delete rest[name];
  return rest;
}

/** Returns what a reference of the form #/$defs/name, or #anchor, leads to. */
function lookUp(reference: string, root: Json): Json | undefined {
  if (!reference.startsWith("#")) return undefined; // what is elsewhere is never fetched
  const pointer = decode(reference.slice(1));
  if (pointer !== "" && !pointer.startsWith("/")) {
    const defs = isObject(root) && isObject(root["$defs"]) ? Object.values(root["$defs"]) : [];
    return defs.find((def) => isObject(def) && def["$anchor"] === pointer);
  }
  return at(root, pointer);
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** Returns what a JSON pointer leads to. */
export function at(value: Json, pointer: string): Json | undefined {
  let here: Json | undefined = value;
  for (const part of pointer.split("/").slice(1)) {
    const name = part.replaceAll("~1", "/").replaceAll("~0", "~");
    if (Array.isArray(here)) here = here[Number(name)];
    else if (isObject(here)) here = Object.hasOwn(here, name) ? here[name] : undefined;
    else return undefined;
  }
  return here;
}

/** Adds a name to a JSON pointer. */
export function below(pointer: string, name: string | number): string {
  return `${pointer}/${String(name).replaceAll("~", "~0").replaceAll("/", "~1")}`;
}

function join(a: JsonObject, b: JsonObject): JsonObject {
  const both: JsonObject = { ...a, ...b };
  if (isObject(a["properties"]) && isObject(b["properties"])) both["properties"] = { ...a["properties"], ...b["properties"] };
  if (Array.isArray(a["required"]) && Array.isArray(b["required"])) both["required"] = [...a["required"], ...b["required"]];
  return both;
}

/** Returns what a field for a value of a schema looks like. */
export function shapeOf(schema: Json, root: Json): Shape {
  const s = resolve(schema, root);
  const types = typesOf(s);
  const common: Common = {
    title: text(s["title"]),
    description: text(s["description"]),
    default: s["default"],
    examples: Array.isArray(s["examples"]) ? s["examples"] : [],
    nullable: types.includes("null") && types.length > 1,
    deprecated: s["deprecated"] === true,
    readOnly: s["readOnly"] === true,
    hints: hintsOf(s),
  };
  if (s["const"] !== undefined) return { ...common, kind: "const", value: s["const"] };
  if (Array.isArray(s["enum"])) {
    const values = s["enum"].filter((v) => v !== null);
    return { ...common, nullable: common.nullable || values.length < s["enum"].length, kind: "enum", values };
  }
  const alternatives = alternativesOf(s, root);
  if (alternatives !== undefined) {
    const nulls = alternatives.filter((a) => equal(resolve(a.schema, root)["type"], "null"));
    const rest = alternatives.filter((a) => !nulls.includes(a));
    if (rest.length === 1 && rest[0] !== undefined) {
      const only = shapeOf(join(withoutChoice(s), resolve(rest[0].schema, root)), root);
      return { ...only, nullable: only.nullable || nulls.length > 0 };
    }
    return { ...common, nullable: common.nullable || nulls.length > 0, kind: "choice", alternatives: rest };
  }
  const named = types.filter((t) => t !== "null");
  if (named.length > 1) {
    const title = (t: string): string => kindNames[t] ?? t;
    return { ...common, kind: "choice", alternatives: named.map((t) => ({ title: title(t), schema: { ...s, type: t } })) };
  }
  return { ...common, ...shapeOfType(named[0] ?? guess(s) ?? (types.length > 0 ? "null" : ""), s) } as Shape;
}

const kindNames: Record<string, string> = { string: "Text", number: "Number", integer: "Whole number", boolean: "Yes or no", object: "Object", array: "List" };

function withoutChoice(s: JsonObject): JsonObject {
  return without(without(s, "oneOf"), "anyOf");
}

function shapeOfType(type: string, s: JsonObject): Partial<Shape> & { kind: Shape["kind"] } {
  switch (type) {
    case "string": {
      const maxLength = isNumber(s["maxLength"]) ? near(s["maxLength"]) : undefined;
      const format = text(s["format"]);
      return {
        kind: "text",
        format,
        pattern: text(s["pattern"]),
        minLength: isNumber(s["minLength"]) ? near(s["minLength"]) : 0,
        maxLength,
        long: format === "" && s["pattern"] === undefined && (maxLength === undefined || maxLength > 120),
        secret: format === "password" || s["writeOnly"] === true,
      };
    }
    case "number":
    case "integer":
      return { kind: "number", integer: type === "integer", minimum: s["minimum"] ?? s["exclusiveMinimum"], maximum: s["maximum"] ?? s["exclusiveMaximum"] };
    case "boolean":
    case "null":
      return { kind: type };
    case "array": {
      const prefix = Array.isArray(s["prefixItems"]) ? s["prefixItems"] : Array.isArray(s["items"]) ? s["items"] : [];
      const item = Array.isArray(s["items"]) ? (s["additionalItems"] ?? true) : (s["items"] ?? true);
      const most = isNumber(s["maxItems"]) ? near(s["maxItems"]) : item === false ? prefix.length : undefined;
      return { kind: "array", item, prefix, least: isNumber(s["minItems"]) ? near(s["minItems"]) : 0, most };
    }
    case "object": {
      const own = isObject(s["properties"]) ? Object.entries(s["properties"]).slice(0, maxProperties) : [];
      const required = Array.isArray(s["required"]) ? s["required"] : [];
      const properties = own.map(([name, schema]) => ({ name, schema, required: required.includes(name) }));
      const open = openOf(s, own.length);
      if (own.length === 0 && open === true) return { kind: "json" };
      return { kind: "object", properties, open };
    }
  }
  return { kind: "json" };
}

/** Returns what a member that is not among the properties looks like; undefined where a form adds none. */
function openOf(s: JsonObject, own: number): Json | undefined {
  const named = isObject(s["patternProperties"]) ? Object.values(s["patternProperties"]) : [];
  const rest = s["additionalProperties"];
  if (named.length > 0) return named.length === 1 && rest === false ? named[0] : true; // which names are meant is the host's to say
  return rest === false ? undefined : (rest ?? (own === 0 ? true : undefined));
}

function alternativesOf(s: JsonObject, root: Json): Alternative[] | undefined {
  const given = Array.isArray(s["oneOf"]) ? s["oneOf"] : s["anyOf"];
  if (!Array.isArray(given) || given.length === 0 || given.length > maxAlternatives) return undefined;
  if (given.every((part) => isObject(part) && part["type"] === undefined && part["properties"] === undefined && part["required"] !== undefined)) {
    return undefined; // which members belong together: the host says what is missing
  }
  const shared = withoutChoice(s);
  return given.map((part, i) => {
    const own = resolve(part, root);
    const merged = join(shared["properties"] !== undefined ? shared : {}, own);
    return { title: titleOf(own, i), schema: merged };
  });
}

/** Names an alternative by its title, or by what tells it from the others. */
function titleOf(s: JsonObject, i: number): string {
  if (typeof s["title"] === "string") return s["title"];
  if (s["const"] !== undefined) return String(s["const"]);
  if (isObject(s["properties"])) {
    for (const value of Object.values(s["properties"])) if (isObject(value) && value["const"] !== undefined) return String(value["const"]);
  }
  const [type] = typesOf(s);
  return type !== undefined ? (kindNames[type] ?? type) : `Alternative ${i + 1}`;
}

function typesOf(s: JsonObject): string[] {
  const type = s["type"];
  if (typeof type === "string") return [type];
  return Array.isArray(type) ? type.filter((t): t is string => typeof t === "string") : [];
}

function guess(s: JsonObject): string | undefined {
  if (s["properties"] !== undefined || s["required"] !== undefined) return "object";
  if (s["items"] !== undefined || s["prefixItems"] !== undefined) return "array";
  if (s["pattern"] !== undefined || s["minLength"] !== undefined || s["maxLength"] !== undefined) return "string";
  if (s["minimum"] !== undefined || s["maximum"] !== undefined || s["multipleOf"] !== undefined) return "number";
  return undefined;
}

function hintsOf(s: JsonObject): Hints {
  const ui = isObject(s["x-ui"]) ? s["x-ui"] : isObject(s["x_ui"]) ? s["x_ui"] : {};
  return {
    hidden: ui["hidden"] === true,
    help: text(ui["help"]),
    placeholder: text(ui["placeholder"]),
    labels: texts(ui["enum_labels"]),
    optionHelp: texts(ui["enum_help"]),
    showWhen: ui["show_when"],
    binding: text(s["x-binding"]) || text(s["x_binding"]),
  };
}

function text(value: Json | undefined): string {
  return typeof value === "string" ? value : "";
}

function texts(value: Json | undefined): Record<string, string> {
  if (!isObject(value)) return {};
  return Object.fromEntries(Object.entries(value).filter((pair): pair is [string, string] => typeof pair[1] === "string"));
}

/**
 * Reports whether a property is shown beside the values of its siblings. The hint is
 * {field, equals}, {field, in: […]} or {name: value, …}, all of which must match; one
 * of another form shows the property.
 */
export function shown(hint: Json | undefined, siblings: Json | undefined): boolean {
  if (!isObject(hint)) return true;
  const values = isObject(siblings) ? siblings : {};
  if (typeof hint["field"] === "string" && ("equals" in hint || "in" in hint)) {
    const value = values[hint["field"]];
    if ("equals" in hint) return equal(value, hint["equals"]);
    return Array.isArray(hint["in"]) && hint["in"].some((one) => equal(value, one));
  }
  return Object.entries(hint).every(([name, wanted]) => equal(values[name], wanted));
}

/** Returns which alternative a value is nearest to; 0 where none is. */
export function chosen(alternatives: Alternative[], root: Json, value: Json | undefined): number {
  let best = 0;
  let most = -1;
  alternatives.forEach((alternative, i) => {
    const points = nearness(alternative.schema, root, value);
    if (points > most) [best, most] = [i, points];
  });
  return best;
}

function nearness(schema: Json, root: Json, value: Json | undefined): number {
  if (value === undefined) return 0;
  const shape = shapeOf(schema, root);
  switch (shape.kind) {
    case "const":
      return equal(shape.value, value) ? 100 : -1;
    case "enum":
      return shape.values.some((one) => equal(one, value)) ? 50 : -1;
    case "object": {
      if (!isObject(value)) return -1;
      let points = 1;
      for (const property of shape.properties) {
        const own = shapeOf(property.schema, root);
        if (own.kind === "const" && property.name in value) points += equal(own.value, value[property.name]) ? 100 : -200;
        else if (property.name in value) points += 2;
        else if (property.required) points -= 1;
      }
      return points;
    }
    case "array":
      return Array.isArray(value) ? 10 : -1;
    case "text":
      return typeof value === "string" ? 10 : -1;
    case "number":
      return isNumber(value) ? 10 : -1;
    case "boolean":
      return typeof value === "boolean" ? 10 : -1;
    case "null":
      return value === null ? 10 : -1;
    default:
      return 0;
  }
}

const maxDepth = 8;

/**
 * Returns the value that a form begins with: constants, defaults, and the objects that
 * are required. undefined where there is nothing to begin with.
 */
export function initial(schema: Json, root: Json, required: boolean, depth = 0): Json | undefined {
  const shape = shapeOf(schema, root);
  if (shape.default !== undefined) return shape.default;
  if (shape.kind === "const" && required) return shape.value;
  if (shape.kind === "enum" && required && shape.values.length === 1) return shape.values[0];
  if (!required || depth > maxDepth) return undefined;
  switch (shape.kind) {
    case "object": {
      const value: JsonObject = {};
      for (const property of shape.properties) {
        const own = initial(property.schema, root, property.required, depth + 1);
        if (own !== undefined) value[property.name] = own;
      }
      return value;
    }
    case "array":
      return Array.from({ length: Math.min(Math.max(shape.least, shape.prefix.length), 20) }, (_, i) => initial(shape.prefix[i] ?? shape.item, root, true, depth + 1) ?? null);
    case "choice":
      return shape.alternatives[0] === undefined ? undefined : initial(shape.alternatives[0].schema, root, true, depth + 1);
    case "null":
      return null;
  }
  return undefined;
}

/** A name for people: from_address is "From address". */
export function label(name: string): string {
  const words = name.replace(/([a-z0-9])([A-Z])/g, "$1 $2").replace(/[_-]+/g, " ").trim();
  return words === "" ? name : words.charAt(0).toUpperCase() + words.slice(1);
}
