import type { Json, JsonObject } from "../../runtime/json.ts";
import { arrayAt, isJsonObject, numberAt, objectAt, stringAt } from "../../runtime/json.ts";
import { compileLinear } from "../../runtime/linear-pattern.ts";
import { NoteList } from "../job/request/notes.ts";
import type { FieldError } from "../job/request/sent.ts";
import { notShown } from "../job/request/shown-value.ts";
import { nameHelp } from "../pods/nearest-name.ts";

/** The largest integer of Kubernetes' int32 fields. */
const INT32_MAX = 2 ** 31 - 1;

/**
 * Checks a value against a JSON Schema. Supports the keywords that `podKind` lists; `schemaFault` refuses schemas with
 * others. An integer without bounds must fit 32 bits. Messages describe allowed values by `x-allowed`, if it is set.
 * Null counts as omitted.
 */
export function schemaErrors(schema: JsonObject, value: Json | undefined, path: string): readonly FieldError[] {
  const errors = new NoteList<FieldError>();
  checkValue({ schema, path, errors }, value);
  return errors.list((rest) => ({ path, ...rest }));
}

/** Where a value stands, and what it must be. */
type SchemaPlace = { readonly schema: JsonObject; readonly path: string; readonly errors: NoteList<FieldError> };

function checkValue(place: SchemaPlace, value: Json | undefined): void {
  const { schema, path, errors } = place;
  if (value === undefined || value === null) return;
  const types = typesOf(schema);
  if (types.length > 0 && !types.some((type) => hasType(value, type))) {
    const allowed = () => stringAt(schema, "x-allowed") ?? types.map(spoken).join(" or ");
    errors.add(() => ({ path, message: `must be ${allowed()}${notShown(value)}` }));
    return;
  }
  const wrong = scalarError(schema, value);
  if (wrong !== null) errors.add(() => ({ path, message: wrong }));
  else if (Array.isArray(value)) checkItems(place, value);
  else if (isJsonObject(value)) checkMembers(place, value);
}

function scalarError(schema: JsonObject, value: Json): string | null {
  const allowed = arrayAt(schema, "enum");
  if (allowed.length > 0 && !allowed.includes(value)) {
    return `must be one of ${allowed.map((one) => (one === "" ? '""' : String(one))).join(", ")}${notShown(value)}`;
  }
  if (typeof value === "number") return numberError(schema, value);
  const pattern = stringAt(schema, "pattern");
  if (typeof value === "string" && pattern !== undefined && compileLinear(pattern)?.test(value) !== true) {
    return `must be ${stringAt(schema, "x-allowed") ?? `text that matches ${pattern}`}${notShown(value)}`;
  }
  const minLength = numberAt(schema, "minLength") ?? 0;
  if (typeof value !== "string" || value.length >= minLength) return null;
  return minLength === 1 ? "must not be empty" : `must have at least ${minLength} characters${notShown(value)}`;
}

function numberError(schema: JsonObject, value: number): string | null {
  const end = typesOf(schema).includes("integer") ? INT32_MAX : Number.POSITIVE_INFINITY;
  const minimum = numberAt(schema, "minimum") ?? -end;
  const maximum = numberAt(schema, "maximum") ?? end;
  if (value >= minimum && value <= maximum) return null;
  const allowed = stringAt(schema, "x-allowed");
  const not = notShown(value);
  if (allowed !== undefined) return `must be ${allowed}${not}`;
  if (maximum === end && value < minimum) return `must be at least ${minimum}${not}`;
  return minimum === -end ? `must be at most ${maximum}${not}` : `must be from ${minimum} to ${maximum}${not}`;
}

function checkItems({ schema, path, errors }: SchemaPlace, value: readonly Json[]): void {
  const minItems = numberAt(schema, "minItems") ?? 0;
  if (value.length < minItems) {
    const message = minItems === 1 ? "must not be empty" : `must have at least ${minItems} items`;
    errors.add(() => ({ path, message }));
    return;
  }
  const items = objectAt(schema, "items");
  for (const [at, item] of value.entries()) checkValue({ schema: items, path: `${path}[${at}]`, errors }, item);
}

function checkMembers({ schema, path, errors }: SchemaPlace, value: JsonObject): void {
  for (const name of missingMembers(schema, value)) {
    errors.add(() => ({ path: `${path}.${name}`, message: "is required" }));
  }
  const properties = objectAt(schema, "properties");
  const isClosed = schema["additionalProperties"] === false;
  const help = nameHelp();
  const unknown = (name: string) => {
    const meant = help(name, Object.keys(properties));
    return `is not a field of ${stringAt(schema, "title") ?? path}${meant === null ? "" : `: did you mean ${meant}?`}`;
  };
  for (const [name, member] of Object.entries(value)) {
    const inner = Object.hasOwn(properties, name) ? properties[name] : undefined;
    const at = `${path}.${name}`;
    if (isJsonObject(inner)) checkValue({ schema: inner, path: at, errors }, member);
    else if (isClosed && (member ?? null) !== null) errors.add(() => ({ path: at, message: unknown(name) }));
  }
}

function missingMembers(schema: JsonObject, value: JsonObject): readonly string[] {
  const required = arrayAt(schema, "required").filter((name) => typeof name === "string");
  return required.filter((name) => (value[name] ?? null) === null);
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
