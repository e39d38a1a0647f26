import { isJsonObject, type Json, type JsonObject } from "../../runtime/json.ts";
import type { FieldError } from "../job/sent.ts";

/** More does not belong in a command: the co-pilot fetches what is large. */
const INPUTS_CHARS_MAX = 64 * 1024;
const INPUTS_MAX = 100;
const INPUT_NAME = /^[A-Za-z_][A-Za-z0-9_-]{0,62}$/;
const SHOWN_MAX = 80;

/**
 * The value of an input as commands and arguments have it: text as it is, numbers and truth as JSON writes them, a list as `[a,b]` with its
 * items in the same way, an object as JSON. Source: Flyte's `serializeLiteral`, which knows no objects.
 */
export function inputText(value: Json | undefined): string {
  if (typeof value === "string") return value;
  if (Array.isArray(value)) return `[${value.map(inputText).join(",")}]`;
  return JSON.stringify(value ?? null);
}

/** What is wrong with a job's inputs; paths are their names, an empty one is all of them. */
export function checkInputs(inputs: JsonObject): readonly FieldError[] {
  const names = Object.keys(inputs);
  if (names.length > INPUTS_MAX)
    return [{ path: "", message: `are ${names.length}: at most ${INPUTS_MAX} are allowed` }];
  const chars = JSON.stringify(inputs).length;
  if (chars > INPUTS_CHARS_MAX) {
    return [{ path: "", message: `have ${chars} characters of JSON: at most ${INPUTS_CHARS_MAX} are allowed` }];
  }
  return names.flatMap((name) => {
    const path = name.slice(0, SHOWN_MAX);
    if (!INPUT_NAME.test(name)) {
      return [{ path, message: "must be named by a letter or _, then letters, digits, _ and -, at most 63" }];
    }
    if (!hasNull(inputs[name])) return [];
    return [
      {
        path,
        message: "must be text, a number, true, false, a list or an object, and not null or with null in a list",
      },
    ];
  });
}

/** Null has no text; within an object it is JSON's own. */
function hasNull(value: Json | undefined): boolean {
  if (Array.isArray(value)) return value.some(hasNull);
  return !isJsonObject(value) && (value ?? null) === null;
}
