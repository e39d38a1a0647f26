import { canonicalJson, isJsonObject } from "../../../src/runtime/json.ts";

/** True if two values are equal where null, empty and absent are. */
export function equalLoosely(a: unknown, b: unknown): boolean {
  return canonicalJson(stripped(a)) === canonicalJson(stripped(b));
}

/** True if two texts are equal, or both are JSON of equal values. */
export function equalText(a: unknown, b: unknown): boolean {
  return equalLoosely(parsed(a), parsed(b));
}

function parsed(value: unknown): unknown {
  if (typeof value !== "string" || !/^[[{]/.test(value)) return value;
  try {
    return JSON.parse(value);
  } catch {
    return value;
  }
}

function stripped(value: unknown): unknown {
  if (Array.isArray(value)) return value.length === 0 ? undefined : value.map((one) => stripped(one) ?? null);
  if (!isJsonObject(value)) return value === "" || value === null ? undefined : value;
  const entries = Object.entries(value).map(([name, inner]) => [name, stripped(inner)] as const);
  const kept = entries.filter(([, inner]) => inner !== undefined);
  return kept.length === 0 ? undefined : Object.fromEntries(kept);
}
