/** Reads the members of a file that operators write. Each error names a member and says what is allowed. */
import { isJsonObject, type Json, type JsonObject } from "./json.ts";

export function known(of: JsonObject, at: string, members: readonly string[], errors: string[]): void {
  const unknown = Object.keys(of).filter((member) => !members.includes(member));
  errors.push(...unknown.map((member) => `${at}${member} is unknown; known are ${members.join(", ")}`));
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
