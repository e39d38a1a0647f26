import type { DescEnum, DescField, DescMessage } from "@bufbuild/protobuf";
import { ScalarType } from "@bufbuild/protobuf";
import type { FieldNote } from "../../core/job/sent.ts";
import type { Json, JsonObject } from "../../runtime/json.ts";
import { isJsonObject } from "../../runtime/json.ts";

const INT32_MAX = 2 ** 31 - 1;
const WELL_KNOWN = "google.protobuf.";
const SIMPLE_KEY = /^\w+$/;

/**
 * Reads an object as the JSON form of a message: knows every member by its JSON or proto name, takes enum values in their short form too
 * (`OnFailure` for `RESTART_POLICY_ON_FAILURE`), and notes each member that does not fit with its path. What it returns can be decoded
 * by protobuf's own reader if nothing was noted. Null stands for an absent member, as in protobuf and Kubernetes.
 */
export function readProtoJson(desc: DescMessage, value: Json, path: string, notes: FieldNote[]): JsonObject {
  if (!isJsonObject(value)) {
    notes.push({ field: path, message: `must be an object, not ${nameOf(value)}` });
    return {};
  }
  if (desc.typeName.startsWith(WELL_KNOWN)) {
    checkNumbers(value, path, notes);
    return value;
  }
  const read: Record<string, Json> = {};
  for (const [member, inner] of Object.entries(value)) {
    const field = desc.fields.find((candidate) => candidate.jsonName === member || candidate.name === member);
    const at = `${path}.${member}`;
    if (field === undefined) notes.push({ field: at, message: `is not a field; there are ${memberNames(desc)}` });
    else if (inner !== undefined && inner !== null) read[field.jsonName] = readProtoField(field, inner, at, notes);
  }
  return read;
}

function memberNames(desc: DescMessage): string {
  return desc.fields.map((field) => field.jsonName).join(", ");
}

/** The value of one field, as `readProtoJson` reads it. */
export function readProtoField(field: DescField, value: Json, path: string, notes: FieldNote[]): Json {
  switch (field.fieldKind) {
    case "list":
      if (Array.isArray(value)) return value.map((item: Json, at) => readOne(field, item, `${path}[${at}]`, notes));
      notes.push({ field: path, message: `must be a list, not ${nameOf(value)}` });
      return [];
    case "map": {
      if (!isJsonObject(value)) {
        notes.push({ field: path, message: `must be an object, not ${nameOf(value)}` });
        return {};
      }
      const entries = Object.entries(value).filter(([, inner]) => inner !== undefined);
      return Object.fromEntries(
        entries.map(([key, inner]) => [
          key,
          readOne(field, inner ?? null, `${path}${SIMPLE_KEY.test(key) ? `.${key}` : `[${key}]`}`, notes),
        ]),
      );
    }
    default:
      return readOne(field, value, path, notes);
  }
}

/** A single value, or one item of a list or map. */
function readOne(field: DescField, value: Json, path: string, notes: FieldNote[]): Json {
  if (field.message !== undefined) return readProtoJson(field.message, value, path, notes);
  if (field.enum !== undefined) return readEnum(field.enum, value, path, notes);
  const problem = scalarProblem(field.scalar ?? ScalarType.STRING, value);
  if (problem !== null) notes.push({ field: path, message: problem });
  return value;
}

function readEnum(desc: DescEnum, value: Json, path: string, notes: FieldNote[]): Json {
  const wanted = typeof value === "string" ? plain(value) : null;
  const found = desc.values.find((one) => wanted === plain(one.name) || wanted === plain(shortName(desc, one.name)));
  if (found !== undefined) return found.name;
  const known = desc.values.filter((one) => one.number !== 0).map((one) => camelCase(shortName(desc, one.name)));
  notes.push({ field: path, message: `must be one of ${known.join(", ")}` });
  return value;
}

function shortName(desc: DescEnum, name: string): string {
  const prefix = (desc.sharedPrefix ?? "").toUpperCase();
  return name.startsWith(prefix) ? name.slice(prefix.length) : name;
}

function plain(name: string): string {
  return name.replaceAll("_", "").toLowerCase();
}

function camelCase(name: string): string {
  return name.toLowerCase().replaceAll(/(?:^|_)([a-z])/g, (_, letter: string) => letter.toUpperCase());
}

function scalarProblem(type: ScalarType, value: Json): string | null {
  switch (type) {
    case ScalarType.STRING:
      return typeof value === "string" ? null : `must be text, not ${nameOf(value)}; put it in quotes`;
    case ScalarType.BOOL:
      return typeof value === "boolean" ? null : `must be true or false, not ${nameOf(value)}`;
    case ScalarType.INT32:
      return isWhole(value) && Math.abs(value) <= INT32_MAX
        ? null
        : `must be a whole number of 32 bits, not ${nameOf(value)}`;
    case ScalarType.INT64:
      return isWhole(value) || isWholeText(value) ? null : `must be a whole number, not ${nameOf(value)}`;
    default:
      return null;
  }
}

function isWhole(value: Json): value is number {
  return Number.isSafeInteger(value);
}

/** How protobuf's JSON writes 64-bit numbers. */
function isWholeText(value: Json): boolean {
  return typeof value === "string" && /^-?\d{1,18}$/.test(value);
}

/** YAML can say .nan and .inf, JSON cannot. */
function checkNumbers(value: Json, path: string, notes: FieldNote[]): void {
  if (typeof value === "number" && !Number.isFinite(value))
    notes.push({ field: path, message: "must be a finite number" });
  if (Array.isArray(value)) value.forEach((item: Json, at) => void checkNumbers(item, `${path}[${at}]`, notes));
  if (!isJsonObject(value)) return;
  for (const [member, inner] of Object.entries(value)) {
    if (inner !== undefined) checkNumbers(inner, `${path}.${member}`, notes);
  }
}

function nameOf(value: Json): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return "a list";
  if (typeof value === "object") return "an object";
  return typeof value === "string" ? `the text "${value}"` : `the ${typeof value} ${value}`;
}
