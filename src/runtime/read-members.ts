/** Reads the members of a file that operators write. Each error names a member and says what is allowed. */
import { isJsonObject, type Json, type JsonObject } from "./json.ts";

/** More unknown members of one object are not named. */
const UNKNOWN_NAMED_MAX = 20;

export function known(of: JsonObject, at: string, members: readonly string[], errors: string[]): void {
  const unknown = Object.keys(of).filter((member) => !members.includes(member));
  for (const member of unknown.slice(0, UNKNOWN_NAMED_MAX)) {
    errors.push(`${at}${member} is unknown; known are ${members.join(", ")}`);
  }
  const more = unknown.length - UNKNOWN_NAMED_MAX;
  if (more > 0) errors.push(`${at}* has ${more} more unknown members; known are ${members.join(", ")}`);
}

export function listOf(value: Json, at: string, errors: string[]): readonly Json[] {
  if (Array.isArray(value)) return value;
  errors.push(`${at} must be a list`);
  return [];
}

export function objectOf(value: Json, at: string, errors: string[]): JsonObject {
  if (isJsonObject(value)) return value;
  errors.push(`${at} must be an object`);
  return {};
}

export function flagOf(value: Json, at: string, errors: string[]): boolean {
  if (typeof value === "boolean") return value;
  errors.push(`${at} must be true or false`);
  return false;
}

export function textOf(value: Json, at: string, errors: string[]): string {
  if (typeof value === "string" && value !== "") return value;
  errors.push(`${at} must be a text that is not empty`);
  return "";
}
