import { isJsonObject, type Json, type JsonObject } from "../../runtime/json.ts";
import type { FieldError } from "../job/request/sent.ts";

/** Larger inputs do not fit a command line. Use the co-pilot for them. */
const INPUTS_CHARS_MAX = 64 * 1024;
const INPUTS_MAX = 100;
const INPUT_NAME = /^[A-Za-z_][A-Za-z0-9_-]{0,62}$/;
const SHOWN_MAX = 80;

/**
 * The text of an input in commands and arguments: text unchanged, numbers and booleans as in JSON, a list as `[a,b]`
 * with its items in the same way, an object as JSON. Source: Flyte's `serializeLiteral`, which has no objects.
 */
export function inputText(value: Json | undefined): string {
  if (typeof value === "string") return value;
  if (Array.isArray(value)) return `[${value.map(inputText).join(",")}]`;
  return JSON.stringify(value ?? null);
}

/** Checks the inputs of a job. Paths are the names of inputs; an empty path means all of them. */
export function checkInputs(inputs: JsonObject): readonly FieldError[] {
  const names = Object.keys(inputs);
  if (names.length > INPUTS_MAX)
    return [{ path: "", message: `has ${names.length} inputs: at most ${INPUTS_MAX} are allowed` }];
  const chars = JSON.stringify(inputs).length;
  if (chars > INPUTS_CHARS_MAX) {
    return [{ path: "", message: `has ${chars} characters of JSON: at most ${INPUTS_CHARS_MAX} are allowed` }];
  }
  return names.flatMap((name) => {
    const path = name.slice(0, SHOWN_MAX);
    if (!INPUT_NAME.test(name)) {
      return [
        { path, message: "must have a name of at most 63 characters: a letter or _, then letters, digits, _ and -" },
      ];
    }
    if (!hasNull(inputs[name])) return [];
    return [
      {
        path,
        message: "must be text, a number, true, false, a list or an object; null is not allowed, nor null in a list",
      },
    ];
  });
}

/** Null has no text form. Inside an object it is written as JSON. */
function hasNull(value: Json | undefined): boolean {
  if (Array.isArray(value)) return value.some(hasNull);
  return !isJsonObject(value) && (value ?? null) === null;
}
