/** Walks through a pod by the types of Kubernetes: finds values of wrong types, and asks the rules of each type. */
import { isJsonObject, type Json, type JsonObject } from "../../../runtime/json.ts";
import { isQuantityText } from "../quantity.ts";
import type { Findings } from "./finding.ts";
import { inside, type PodPlace } from "./place.ts";
import { type MemberType, membersOf } from "./pod-types.ts";

/** Where the walk is: an object of a type, whose members have the right types. */
type Visit = (object: JsonObject, type: string, at: PodPlace) => void;
/** Told of members that Kubernetes does not know. */
type Unknown = (name: string, value: Json | undefined, type: string, at: PodPlace) => void;

export type Walk = {
  readonly findings: Findings;
  readonly unknown?: Unknown;
  /** Called for each object, before and after those inside it. */
  readonly visit?: Visit;
  readonly leave?: Visit;
};

/** The type of a value, and the type of the object that holds it. */
type HeldType = { readonly type: MemberType; readonly holder: string };

/** Walks through an object of a type. Takes linear time. */
export function walkObject(walk: Walk, object: JsonObject, type: string, at: PodPlace): void {
  walk.visit?.(object, type, at);
  const members = membersOf(type);
  for (const name in object) {
    const value = object[name];
    const member = members.get(name);
    if (member === undefined) walk.unknown?.(name, value, type, at);
    else if (value !== undefined && isPlain(value, member)) continue;
    else if (value !== undefined && value !== null)
      walkValue(walk, value, { type: member, holder: type }, inside(at, name));
  }
  walk.leave?.(object, type, at);
}

/** True for a scalar of the right type, whose place nobody asks for. */
function isPlain(value: Json, type: MemberType): boolean {
  return type.form === "scalar" && isScalar(value, type.name);
}

/** Null is allowed anywhere: Kubernetes reads it as an absent member, an empty text, a zero or an empty object. */
function walkValue(walk: Walk, value: Json, member: HeldType, at: PodPlace): void {
  if (value === null) return;
  const { type, holder } = member;
  switch (type.form) {
    case "object":
      if (isJsonObject(value)) walkObject(walk, value, type.name, at);
      else wrongType(walk, value, member, at);
      return;
    case "list":
      if (Array.isArray(value)) walkItems(walk, value, { type: type.of, holder }, at);
      else wrongType(walk, value, member, at);
      return;
    case "map":
      if (isJsonObject(value)) walkEntries(walk, value, { type: type.of, holder }, at);
      else wrongType(walk, value, member, at);
      return;
    case "scalar":
      if (!isScalar(value, type.name)) wrongType(walk, value, member, at);
  }
}

function walkItems(walk: Walk, items: readonly Json[], of: HeldType, at: PodPlace): void {
  for (const [index, item] of items.entries()) {
    // An item that is null is an empty object, which the rules see.
    if (item === null && of.type.form === "object") walkObject(walk, {}, of.type.name, inside(at, index));
    else if (!isPlain(item, of.type)) walkValue(walk, item, of, inside(at, index));
  }
}

function walkEntries(walk: Walk, map: JsonObject, of: HeldType, at: PodPlace): void {
  for (const key in map) {
    const value = map[key];
    if (value !== undefined && !isPlain(value, of.type)) walkValue(walk, value, of, inside(at, { key }));
  }
}

function wrongType({ findings }: Walk, value: Json, { type, holder }: HeldType, place: PodPlace): void {
  // JSON has no such number, so that a request with one is refused before.
  if (typeof value === "number" && !Number.isFinite(value)) return;
  findings.add({ kind: "type", place, holder, value, detail: typeText(type), allowed: typeWords(type) });
}

/** `string`, `[EnvVar]`, `{quantity}`. */
function typeText(type: MemberType): string {
  if (type.form === "list") return `[${typeText(type.of)}]`;
  return type.form === "map" ? `{${typeText(type.of)}}` : type.name;
}

const INT32_MAX = 2 ** 31 - 1;
const INT64_MAX = 2 ** 63;

const SCALAR_WORDS: Readonly<Record<string, string>> = {
  string: "must be text",
  boolean: "must be true or false",
  int32: `must be a whole number from -${INT32_MAX + 1} to ${INT32_MAX}`,
  int64: "must be a whole number of at most 63 bits",
  quantity: "must be a quantity such as 500m, 2 or 8Gi",
  intOrString: "must be a whole number or text",
};

function typeWords(type: MemberType): string {
  if (type.form === "list") return "must be a list";
  return type.form === "scalar" ? (SCALAR_WORDS[type.name] ?? "") : "must be an object";
}

function isScalar(value: Json, type: string): boolean {
  switch (type) {
    case "string":
      return typeof value === "string";
    case "boolean":
      return typeof value === "boolean";
    case "int32":
      return isInt32(value);
    case "int64":
      // As JSON, the least number of 64 bits has rounded digits, which are too many.
      return isInteger(value) && Math.abs(value) < INT64_MAX;
    case "quantity":
      return isQuantity(value);
    default:
      return typeof value === "string" || isInt32(value);
  }
}

function isInteger(value: Json): value is number {
  return typeof value === "number" && Number.isInteger(value);
}

function isInt32(value: Json): boolean {
  return isInteger(value) && value >= -INT32_MAX - 1 && value <= INT32_MAX;
}

/** Longer texts are refused without parsing them. */
const QUANTITY_CHARS_MAX = 40;

function isQuantity(value: Json): boolean {
  if (typeof value !== "string" && typeof value !== "number") return false;
  const text = String(value);
  return text.length <= QUANTITY_CHARS_MAX && isQuantityText(text);
}
