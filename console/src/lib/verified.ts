/** When the ledger was verified last, and what was found. */
import { request } from "./api/client.ts";
import { isNumber, isObject, type Exact, type Json } from "./json.ts";

/** What the newest entry ledger.verified says. */
export interface Verification {
  at: string;
  by: string;
  ok: boolean;
  entries: number | Exact;
  /** Where it does not hold; "" where it does. */
  fault: string;
}

/** Returns the last verification; undefined where there was none. */
export async function verified(signal: AbortSignal): Promise<Verification | undefined> {
  const { entries } = await request("list-entries", { query: { newest: 1, subject: "ledger", kind: "ledger.verified" }, signal });
  const entry = entries[0];
  const body = entry?.body as Json | undefined;
  if (entry === undefined || !isObject(body)) return undefined;
  const fault = body["fault"];
  return {
    at: entry.at, by: entry.principal, ok: body["ok"] === true, entries: isNumber(body["entries"]) ? body["entries"] : 0,
    fault: isObject(fault) ? `${String(fault["chain"])}/${String(fault["seq"])}: ${String(fault["what"])}` : "",
  };
}
