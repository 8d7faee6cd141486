/** Runs an operation and hears what its plugin says while it works. */
import { address, Refused, send, type Problem, type Schemas } from "./api/client.ts";
import { parse, stringify, type Json, type JsonObject } from "./json.ts";
import { read } from "./sse.ts";

export interface Run {
  plugin: string;
  operation: string;
  input: Json | undefined;
  key: string;
  fresh: boolean;
  session: string;
  dry: boolean;
  /** Artifacts of the session that the input is to name, by their ids. */
  artifacts: string[];
}

/** Something that the plugin said. */
export interface Said {
  event: string;
  data: Json;
}

/** Returns the body of the request. */
export function bodyOf(run: Run): JsonObject {
  const body: JsonObject = run.artifacts.length > 0 ? { operation: `${run.plugin}/${run.operation}`, artifacts: run.artifacts } : {};
  if (run.input !== undefined) body["input"] = run.input;
  if (run.fresh) body["fresh"] = true;
  if (run.session !== "") body["session"] = run.session;
  if (run.dry && run.artifacts.length > 0) body["dry_run"] = "all";
  return body;
}

function where(run: Run): string {
  if (run.artifacts.length > 0) return address("make-call");
  const path = address("execute-operation", { path: { plugin: run.plugin, operation: run.operation } });
  return run.dry ? `${path}?dry_run=true` : path;
}

/** Makes the call. Throws Refused where the host refuses it, and Unreachable. */
export async function execute(run: Run, hear: (said: Said) => void, signal: AbortSignal): Promise<Schemas["Outcome"]> {
  const headers: Record<string, string> = { Accept: run.dry ? "application/json" : "text/event-stream, application/json", "Content-Type": "application/json" };
  if (run.key !== "") headers["Idempotency-Key"] = run.key;
  const response = await send(where(run), { method: "POST", headers, body: stringify(bodyOf(run)), credentials: "same-origin", signal });
  if (response.headers.get("Content-Type")?.startsWith("text/event-stream") !== true) return parse(await response.text()) as unknown as Schemas["Outcome"];
  for await (const message of read(response)) {
    const data = parse(message.data);
    if (message.event === "result") return data as unknown as Schemas["Outcome"];
    if (message.event === "problem") throw new Refused(data as unknown as Problem);
    hear({ event: message.event, data });
  }
  throw new Error("The answer broke off. The call goes on if it has effects; look for it under Calls.");
}

/** The same request with curl: the token is a variable, never a value. */
export function asCurl(run: Run): string {
  const lines = [`curl ${location.origin}${where(run)}`, `-H "Authorization: Bearer $MORTISE_TOKEN"`, `-H 'Content-Type: application/json'`];
  if (run.key !== "") lines.push(`-H ${quote(`Idempotency-Key: ${run.key}`)}`);
  lines.push(`-d ${quote(stringify(bodyOf(run)))}`);
  return lines.join(" \\\n  ");
}

/** The same call at the command line. */
export function asCommand(run: Run): string {
  const parts = ["mortise run", quote(run.plugin === run.operation ? run.plugin : `${run.plugin}/${run.operation}`)];
  if (run.input !== undefined) parts.push(`--input ${quote(stringify(run.input))}`);
  for (const id of run.artifacts) parts.push(`--artifact ${quote(id)}`);
  if (run.key !== "") parts.push(`--key ${quote(run.key)}`);
  if (run.session !== "") parts.push(`--session ${quote(run.session)}`);
  if (run.fresh) parts.push("--fresh");
  if (run.dry) parts.push("--dry-run");
  return parts.join(" ");
}

function quote(text: string): string {
  return /^[\w./@:=-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}
