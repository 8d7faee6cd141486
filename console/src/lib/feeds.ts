import { isObject, type Json } from "./json.ts";

/** What a feed of a plugin may run, and whether there is anything to choose. */
export interface FeedChoice {
  /** The operations that may be named, in the plugin's own order. */
  names: string[];
  /** The one that a form begins with; "" where the person has to choose. */
  chosen: string;
  /** One operation alone is allowed: a form fixes it, and hides the member of the input that names it. */
  locked: boolean;
}

/** Returns what a feed may run, by the manifest of its plugin. The host alone says whether it then may. */
export function feedChoice(manifest: Json | undefined): FeedChoice {
  const feed = isObject(manifest) && isObject(manifest["feed"]) ? manifest["feed"] : {};
  const allowed = Array.isArray(feed["allowed"]) ? feed["allowed"].filter((one) => typeof one === "string") : [];
  const all = isObject(manifest) && Array.isArray(manifest["operations"]) ? manifest["operations"] : [];
  const own = all.flatMap((op) => (isObject(op) && typeof op["name"] === "string" && (op["kind"] === "operator" || op["kind"] === "tool") ? [op["name"]] : []));
  const names = allowed.length > 0 ? allowed : own;
  const usual = typeof feed["default"] === "string" && names.includes(feed["default"]) ? feed["default"] : "";
  return { names, chosen: names.length === 1 ? (names[0] as string) : usual, locked: names.length === 1 };
}

/** Returns the schema of an input without the member that names the operation: the feed names it itself. */
export function withoutOperation(schema: Json | undefined): Json {
  if (!isObject(schema) || !isObject(schema["properties"])) return schema ?? {};
  const properties = Object.fromEntries(Object.entries(schema["properties"]).filter(([name]) => name !== "op"));
  const required = Array.isArray(schema["required"]) ? schema["required"].filter((name) => name !== "op") : undefined;
  return { ...schema, properties, ...(required === undefined ? {} : { required }) };
}
