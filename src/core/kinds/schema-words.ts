import { isJsonObject } from "../../runtime/json.ts";
import { compileLinear } from "../../runtime/linear-pattern.ts";

const TYPES = ["array", "object", "integer", "number", "boolean", "string", "null"];
/** The keywords that `schemaErrors` checks, each with the check of its value. */
const CHECKED: Readonly<Record<string, (value: unknown) => string | null>> = {
  type: (value) =>
    unless(listOf(value).length > 0 && listOf(value).every(isType), `one or several of ${TYPES.join(", ")}`),
  enum: (value) => unless(Array.isArray(value) && value.length > 0, "a list of at least one value"),
  pattern: patternFault,
  minLength: (value) => unless(isCount(value), "a whole number of at least 0"),
  minItems: (value) => unless(isCount(value), "a whole number of at least 0"),
  minimum: (value) => unless(Number.isFinite(value), "a number"),
  maximum: (value) => unless(Number.isFinite(value), "a number"),
  required: (value) =>
    unless(Array.isArray(value) && value.every((name) => typeof name === "string"), "a list of names of members"),
  additionalProperties: (value) => unless(typeof value === "boolean", "true or false"),
};
/** Keywords that only inform people. All that begin with `x-` do so too. */
const INFORMING = ["title", "description", "default", "examples", "deprecated", "$comment"];
const WORDS = [...Object.keys(CHECKED), "items", "properties"];

/**
 * Returns the first error in a schema, with its path. Null: none. An unsupported keyword is an error too: its author
 * would expect a check that does not happen.
 */
export function schemaFault(schema: unknown, path: string): string | null {
  if (!isJsonObject(schema)) return `${path} must be an object, the JSON Schema of a value`;
  const unknown = Object.keys(schema).find((word) => !isKnown(word));
  if (unknown !== undefined) {
    return `${path} has the keyword ${unknown}, which is not supported; supported are ${WORDS.join(", ")}`;
  }
  for (const [word, faultOf] of Object.entries(CHECKED)) {
    const fault = schema[word] === undefined ? null : faultOf(schema[word]);
    if (fault !== null) return `${path}.${word} must be ${fault}`;
  }
  return innerFault(schema, path);
}

function innerFault(schema: { readonly [word: string]: unknown }, path: string): string | null {
  const { items, properties = {}, required = [], additionalProperties } = schema;
  const itemsFault = items === undefined ? null : schemaFault(items, `${path}.items`);
  if (itemsFault !== null) return itemsFault;
  if (!isJsonObject(properties)) return `${path}.properties must be an object of JSON Schemas by member`;
  for (const [name, inner] of Object.entries(properties)) {
    const fault = schemaFault(inner, `${path}.properties.${name}`);
    if (fault !== null) return fault;
  }
  const missing = (required as readonly string[]).find((name) => !Object.hasOwn(properties, name));
  const never = missing !== undefined && additionalProperties === false;
  return never ? `${path}.required names ${missing}, which is not one of its properties` : null;
}

function isKnown(word: string): boolean {
  return WORDS.includes(word) || INFORMING.includes(word) || word.startsWith("x-");
}

function unless(holds: boolean, must: string): string | null {
  return holds ? null : must;
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [value];
}

function isType(value: unknown): boolean {
  return TYPES.some((type) => type === value);
}

function isCount(value: unknown): boolean {
  return Number.isInteger(value) && Number(value) >= 0;
}

function patternFault(value: unknown): string | null {
  if (typeof value !== "string") return "a regular expression";
  if (compileLinear(value) !== null) return null;
  return `a regular expression of RE2, without look-around and references back, not ${value}`;
}
