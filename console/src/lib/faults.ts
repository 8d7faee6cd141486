/** What the host says is wrong with an input, as places of a form. */
import type { Refused } from "./api/client.ts";
import { isObject, type Json } from "./json.ts";
import type { Fault } from "./schema/fault.ts";
import { below, shapeOf } from "./schema/shape.ts";

const most = 100;

/** Returns the faults of a refusal whose pointers are into the request's body, of which the input is a member. */
export function faultsOf(refused: Refused, member = "/input"): Fault[] {
  return (refused.problem.errors ?? [])
    .filter(({ pointer }) => pointer === member || pointer.startsWith(`${member}/`))
    .map(({ pointer, detail, members }) => ({ pointer: pointer.slice(member.length), detail, members: members ?? [] }));
}

/**
 * Returns the faults that a failed call's details name: places with what is wrong there, or
 * sentences that begin with the name of a member, as plugins write that check for themselves.
 */
export function faultsOfDetails(details: Json | undefined, schema: Json): Fault[] {
  const list = isObject(details) ? details["errors"] : undefined;
  if (!Array.isArray(list)) return [];
  const shape = shapeOf(schema, schema);
  const members = shape.kind === "object" ? shape.properties.map((p) => p.name) : [];
  return list.slice(0, most).flatMap((one): Fault[] => {
    if (isObject(one)) return typeof one["pointer"] === "string" ? [{ pointer: one["pointer"], detail: String(one["detail"] ?? one["message"] ?? ""), members: [] }] : [];
    if (typeof one !== "string") return [];
    const member = members.find((m) => one.startsWith(`${m} `) || one.startsWith(`${m}: `));
    return [{ pointer: member === undefined ? "" : below("", member), detail: one, members: [] }];
  });
}
