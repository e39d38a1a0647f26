import { isJsonObject } from "../../runtime/json.ts";

const TYPES = ["array", "object", "integer", "number", "boolean", "string", "null"];
/** What `schemaErrors` goes by, each with what it must be. */
const COUNTING: Readonly<Record<string, (value: unknown) => string | null>> = {
  type: (value) =>
    unless(listOf(value).length > 0 && listOf(value).every(isType), `one or several of ${TYPES.join(", ")}`),
  enum: (value) => unless(Array.isArray(value) && value.length > 0, "a list of one value or more"),
  pattern: patternFault,
  minLength: (value) => unless(isCount(value), "a whole number of 0 or more"),
  minItems: (value) => unless(isCount(value), "a whole number of 0 or more"),
  minimum: (value) => unless(Number.isFinite(value), "a number"),
  maximum: (value) => unless(Number.isFinite(value), "a number"),
  required: (value) =>
    unless(Array.isArray(value) && value.every((name) => typeof name === "string"), "a list of members' names"),
  additionalProperties: (value) => unless(typeof value === "boolean", "true or false"),
};
/** Words that only tell people something; so does whatever begins with `x-`. */
const TELLING = ["title", "description", "default", "examples", "deprecated", "$comment"];
const WORDS = [...Object.keys(COUNTING), "items", "properties"];

/**
 * Why a schema cannot be gone by as it is written, with the path; null where it can. A word that would count for nothing is a fault too: what its
 * author takes for checked would not be.
 */
export function schemaFault(schema: unknown, path: string): string | null {
  if (!isJsonObject(schema)) return `${path} must be an object, the JSON Schema of a value`;
  const unknown = Object.keys(schema).find((word) => !isKnown(word));
  if (unknown !== undefined) {
    return `${path} has ${unknown}, which would check nothing; what counts is ${WORDS.join(", ")}`;
  }
  for (const [word, faultOf] of Object.entries(COUNTING)) {
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
  return never ? `${path}.required names ${missing}, which is none of its properties` : null;
}

function isKnown(word: string): boolean {
  return WORDS.includes(word) || TELLING.includes(word) || word.startsWith("x-");
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
  try {
    new RegExp(value, "u");
    return null;
  } catch {
    return `a regular expression in Unicode mode, and ${value} is none`;
  }
}
