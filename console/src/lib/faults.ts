/** What the host says is wrong with an input, as places of a form. */
import type { Refused } from "./api/client.ts";
import { isObject, type Json } from "./json.ts";
import type { Fault } from "./schema/form.svelte.ts";

/** Returns the faults of a refusal whose pointers are into the request's body, of which the input is a member. */
export function faultsOf(refused: Refused, member = "/input"): Fault[] {
  return (refused.problem.errors ?? []).map(({ pointer, detail }) => ({ pointer: pointer === member ? "" : pointer.startsWith(`${member}/`) ? pointer.slice(member.length) : pointer, detail }));
}

/** Returns the faults that a failed call's details name. */
export function faultsOfDetails(details: Json | undefined): Fault[] {
  const list = isObject(details) ? details["errors"] : undefined;
  if (!Array.isArray(list)) return [];
  return list.filter(isObject).map((f) => ({ pointer: String(f["pointer"] ?? ""), detail: String(f["detail"] ?? f["message"] ?? "") }));
}
