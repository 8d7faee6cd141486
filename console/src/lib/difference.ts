/** What is different between two JSON values, place by place. */
import { equal, isObject, type Json } from "./json.ts";
import { below } from "./schema/shape.ts";

export interface Change {
  pointer: string;
  before: Json | undefined;
  after: Json | undefined;
}

const most = 500;

/** Returns the places at which two values differ, at most 500 of them. */
export function differences(before: Json | undefined, after: Json | undefined, pointer = "", found: Change[] = []): Change[] {
  if (found.length >= most || equal(before, after)) return found;
  if (isObject(before) && isObject(after)) {
    for (const name of new Set([...Object.keys(before), ...Object.keys(after)])) differences(before[name], after[name], below(pointer, name), found);
  } else if (Array.isArray(before) && Array.isArray(after)) {
    for (let i = 0; i < Math.max(before.length, after.length); i++) differences(before[i], after[i], below(pointer, i), found);
  } else found.push({ pointer, before, after });
  return found;
}
