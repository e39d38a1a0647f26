import type { Json, JsonObject } from "../../../runtime/json.ts";

/** True for a member that Kubernetes reads as absent, whatever its type is. */
export function isAbsent(value: Json | undefined): value is null | undefined {
  return value === undefined || value === null;
}

/** True also for an empty text, zero, false and an empty list or map. */
export function isEmpty(value: Json | undefined): boolean {
  if (value === undefined || value === null || value === "" || value === 0 || value === false) return true;
  return typeof value === "object" && (Array.isArray(value) ? value.length : Object.keys(value).length) === 0;
}
/** The members of an object that are set, in the order of the list. */
export function setAmong(object: JsonObject, members: readonly string[]): readonly string[] {
  return members.filter((member) => !isAbsent(object[member]));
}
