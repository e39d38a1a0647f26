import type { Json, JsonObject } from "../../runtime/json.ts";
import { arrayAt, isJsonObject, numberAt, objectAt, stringAt } from "../../runtime/json.ts";
import type { FieldError } from "../job/sent.ts";

/** The largest integer of Kubernetes' int32 fields. */
const INT32_MAX = 2 ** 31 - 1;

/**
 * Checks a value against a JSON Schema. Supports the keywords that `podKind` lists; `schemaFault` refuses schemas with
 * others. An integer without bounds must fit 32 bits. Messages describe allowed values by `x-allowed`, if it is set.
 * Null counts as omitted.
 */
export function schemaErrors(schema: JsonObject, value: Json | undefined, path: string): readonly FieldError[] {
  if (value === undefined || value === null) return [];
  const types = typesOf(schema);
  if (types.length > 0 && !types.some((type) => hasType(value, type))) {
    return [{ path, message: `must be ${stringAt(schema, "x-allowed") ?? types.map(spoken).join(" or ")}` }];
  }
  const wrong = scalarError(schema, value);
  if (wrong !== null) return [{ path, message: wrong }];
  if (Array.isArray(value)) return listErrors(schema, value, path);
  return isJsonObject(value) ? memberErrors(schema, value, path) : [];
}

function scalarError(schema: JsonObject, value: Json): string | null {
  const allowed = arrayAt(schema, "enum");
  if (allowed.length > 0 && !allowed.includes(value)) {
    return `must be one of ${allowed.map((one) => (one === "" ? '""' : String(one))).join(", ")}`;
  }
  if (typeof value === "number") return numberError(schema, value);
  const pattern = stringAt(schema, "pattern");
  if (typeof value === "string" && pattern !== undefined && !new RegExp(pattern, "u").test(value)) {
    return `must be ${stringAt(schema, "x-allowed") ?? `text that matches ${pattern}`}`;
  }
  const minLength = numberAt(schema, "minLength") ?? 0;
  if (typeof value !== "string" || value.length >= minLength) return null;
  return minLength === 1 ? "must not be empty" : `must have at least ${minLength} characters`;
}

function numberError(schema: JsonObject, value: number): string | null {
  const end = typesOf(schema).includes("integer") ? INT32_MAX : Number.POSITIVE_INFINITY;
  const minimum = numberAt(schema, "minimum") ?? -end;
  const maximum = numberAt(schema, "maximum") ?? end;
  if (value >= minimum && value <= maximum) return null;
  const allowed = stringAt(schema, "x-allowed");
  if (allowed !== undefined) return `must be ${allowed}`;
  if (maximum === end && value < minimum) return `must be at least ${minimum}`;
  return minimum === -end ? `must be at most ${maximum}` : `must be from ${minimum} to ${maximum}`;
}

function listErrors(schema: JsonObject, value: readonly Json[], path: string): readonly FieldError[] {
  const minItems = numberAt(schema, "minItems") ?? 0;
  if (value.length < minItems) {
    return [{ path, message: minItems === 1 ? "must not be empty" : `must have at least ${minItems} items` }];
  }
  return value.flatMap((item, at) => schemaErrors(objectAt(schema, "items"), item, `${path}[${at}]`));
}

function memberErrors(schema: JsonObject, value: JsonObject, path: string): readonly FieldError[] {
  const properties = objectAt(schema, "properties");
  const missing = arrayAt(schema, "required")
    .filter((name) => typeof name === "string" && (value[name] ?? null) === null)
    .map((name) => ({ path: `${path}.${name}`, message: "is required" }));
  const wrong = Object.entries(value).flatMap(([name, member]) => {
    const inner = Object.hasOwn(properties, name) ? properties[name] : undefined;
    const at = `${path}.${name}`;
    if (isJsonObject(inner)) return schemaErrors(inner, member, at);
    const unknown = schema["additionalProperties"] === false && member !== undefined && member !== null;
    return unknown ? [{ path: at, message: `is not a field of ${stringAt(schema, "title") ?? path}` }] : [];
  });
  return [...missing, ...wrong];
}

function typesOf(schema: JsonObject): readonly string[] {
  const type = schema["type"];
  return typeof type === "string" ? [type] : arrayAt(schema, "type").filter((one) => typeof one === "string");
}

function hasType(value: Json, type: string): boolean {
  switch (type) {
    case "array":
      return Array.isArray(value);
    case "object":
      return isJsonObject(value);
    case "integer":
      return Number.isInteger(value);
    default:
      return typeof value === type;
  }
}

const SPOKEN: Readonly<Record<string, string>> = {
  array: "a list",
  object: "an object",
  integer: "a whole number",
  number: "a number",
  boolean: "true or false",
  string: "text",
};

function spoken(type: string): string {
  return SPOKEN[type] ?? type;
}
