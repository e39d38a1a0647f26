import { compareText } from "./compare-text.ts";

/** Any JSON value, read-only. */
export type Json = null | boolean | number | string | readonly Json[] | JsonObject;

/** A JSON object. Missing members are undefined. */
export type JsonObject = { readonly [member: string]: Json | undefined };

/** True for objects, not for arrays, null or scalars. */
export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The member of an object as an object; an empty object if it is missing or of another type. */
export function objectAt(value: unknown, member: string): JsonObject {
  const inner = isJsonObject(value) ? value[member] : undefined;
  return isJsonObject(inner) ? inner : {};
}

/** The member of an object as an array; an empty array if it is missing or of another type. */
export function arrayAt(value: unknown, member: string): readonly Json[] {
  const inner = isJsonObject(value) ? value[member] : undefined;
  return Array.isArray(inner) ? inner : [];
}

/** The member of an object as text; undefined if it is missing or of another type. */
export function stringAt(value: unknown, member: string): string | undefined {
  const inner = isJsonObject(value) ? value[member] : undefined;
  return typeof inner === "string" ? inner : undefined;
}

/** The member of an object as a number; undefined if it is missing or of another type. */
export function numberAt(value: unknown, member: string): number | undefined {
  const inner = isJsonObject(value) ? value[member] : undefined;
  return typeof inner === "number" ? inner : undefined;
}

/** The text members of a member of an object: labels, annotations, selectors. */
export function stringMapAt(value: unknown, member: string): Readonly<Record<string, string>> {
  const map: Record<string, string> = {};
  for (const [key, inner] of Object.entries(objectAt(value, member))) {
    if (typeof inner === "string") map[key] = inner;
  }
  return map;
}

/** JSON text with sorted members, so that equal values give equal text. */
export function canonicalJson(value: unknown): string {
  return JSON.stringify(value, (_key, inner: unknown) =>
    isJsonObject(inner) ? Object.fromEntries(Object.entries(inner).sort(([a], [b]) => compareText(a, b))) : inner,
  );
}
