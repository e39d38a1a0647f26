import { cutText } from "../../../runtime/cut-text.ts";
import { isJsonObject, type Json } from "../../../runtime/json.ts";

const CHARS_MAX = 60;

/** A value in a message: text in quotes, lists and objects by their type. */
function shownValue(value: Json): string {
  if (Array.isArray(value)) return "a list";
  if (isJsonObject(value)) return "an object";
  return typeof value === "string" ? `"${cutText(value, CHARS_MAX)}"` : String(value);
}

/** `, not "Most"`: the end of a message that says what a value must be. */
export function notShown(value: Json): string {
  return `, not ${shownValue(value)}`;
}
