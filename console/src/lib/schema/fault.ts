/** What the host says is wrong with a value, and the fields at which that is told. */
import { below } from "./shape.ts";

/** What is wrong at one place of the value. */
export interface Fault {
  pointer: string;
  detail: string;
  /** The members that are missing at the place, or may not be there, where that is what is wrong. */
  members: string[];
}

/** Returns the places whose fields tell of a fault: its own, or those of its members. */
export function placesOf(fault: Fault): string[] {
  return fault.members.length === 0 ? [fault.pointer] : fault.members.map((member) => below(fault.pointer, member));
}

/** Returns the faults that remain once the value at a place has changed. */
export function without(faults: Fault[], pointer: string): Fault[] {
  return faults.flatMap((fault) => {
    const inside = (place: string): boolean => place === pointer || place.startsWith(`${pointer}/`);
    if (fault.members.length === 0) return inside(fault.pointer) ? [] : [fault];
    const members = fault.members.filter((member) => !inside(below(fault.pointer, member)));
    return members.length === 0 ? [] : [members.length === fault.members.length ? fault : { ...fault, members }];
  });
}

/** Returns a place and those around it, from the inside out. */
export function around(pointer: string): string[] {
  const parts = pointer.split("/");
  return parts.map((_, i) => parts.slice(0, parts.length - i).join("/"));
}
