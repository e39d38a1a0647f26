/**
 * Checks the values of a request that no constraint of the proto files names: texts and numbers that cannot be stored,
 * and well-known messages that break their own definition.
 */
import type { DescField, DescMessage, Message } from "@bufbuild/protobuf";
import type { Duration, Timestamp } from "@bufbuild/protobuf/wkt";
import type { FieldNote } from "../../core/job/request/sent.ts";

/** An answer shows only a part of this. It bounds the memory that a request with a million wrong values costs. */
const NOTES_MAX = 100;
const INT_MAX = BigInt(Number.MAX_SAFE_INTEGER);
const NANOS_MAX = 999_999_999;
/** About 10,000 years, the range of google.protobuf.Duration. */
const DURATION_SECONDS_MAX = 315_576_000_000n;
/** 0001-01-01T00:00:00Z and 9999-12-31T23:59:59Z, the range of google.protobuf.Timestamp. */
const TIMESTAMP_SECONDS_MIN = -62_135_596_800n;
const TIMESTAMP_SECONDS_MAX = 253_402_300_799n;

const WELL_KNOWN: Readonly<Record<string, (value: object) => string | null>> = {
  "google.protobuf.Duration": (value) => durationProblem(value as Duration),
  "google.protobuf.Timestamp": (value) => timestampProblem(value as Timestamp),
};

/** Returns the fields of a message whose values are wrong. Leaves out the field `except`; its handler checks it. */
export function checkValues(schema: DescMessage, message: Message, except?: string): readonly FieldNote[] {
  const notes: FieldNote[] = [];
  walkMessage({ fields: schema.fields.filter((field) => field.localName !== except) }, message, "", notes);
  return notes;
}

function walkMessage(schema: Pick<DescMessage, "fields">, message: object, path: string, notes: FieldNote[]): void {
  for (const field of schema.fields) {
    const value = valueIn(field, message as Record<string, unknown>);
    if (value !== undefined) walkField(field, value, path === "" ? field.name : `${path}.${field.name}`, notes);
  }
}

/** Returns the value of a field; undefined if it is not set. A member of a oneof is stored under the oneof's name. */
function valueIn(field: DescField, message: Readonly<Record<string, unknown>>): unknown {
  if (field.oneof === undefined) return message[field.localName];
  const { case: name, value } = message[field.oneof.localName] as { readonly case?: string; readonly value?: unknown };
  return name === field.localName ? value : undefined;
}

function walkField(field: DescField, value: unknown, path: string, notes: FieldNote[]): void {
  const schema = field.fieldKind === "scalar" || field.fieldKind === "enum" ? undefined : field.message;
  const walk = (item: unknown, at: string) => walkItem(schema, item, at, notes);
  if (field.fieldKind === "list") {
    for (const [at, item] of (value as unknown[]).entries()) walk(item, `${path}[${at}]`);
  } else if (field.fieldKind === "map") {
    const map = value as Readonly<Record<string, unknown>>;
    for (const key in map) {
      checkKey(key, path, notes);
      walk(map[key], `${path}[${key}]`);
    }
  } else {
    walk(value, path);
  }
}

/** A Struct is plain JSON here, as every scalar is. */
function walkItem(schema: DescMessage | undefined, item: unknown, path: string, notes: FieldNote[]): void {
  if (schema === undefined || schema.typeName === "google.protobuf.Struct") {
    walkJson(item, path, notes);
    return;
  }
  const problem = WELL_KNOWN[schema.typeName]?.(item as object) ?? null;
  if (problem === null) walkMessage(schema, item as object, path, notes);
  else note(notes, path, problem);
}

/**
 * Checks a scalar, or the JSON of a Struct. An object may have tens of thousands of members, and a list of its entries
 * costs several times as much as to walk through it.
 */
function walkJson(value: unknown, path: string, notes: FieldNote[]): void {
  if (notes.length >= NOTES_MAX) return;
  const problem = scalarProblem(value);
  if (problem !== null) note(notes, path, problem);
  if (Array.isArray(value)) {
    for (const [at, item] of value.entries()) walkJson(item, `${path}[${at}]`, notes);
  } else if (typeof value === "object" && value !== null && !ArrayBuffer.isView(value)) {
    const object = value as Readonly<Record<string, unknown>>;
    for (const key in object) {
      checkKey(key, path, notes);
      walkJson(object[key], `${path}.${key}`, notes);
    }
  }
}

function scalarProblem(value: unknown): string | null {
  switch (typeof value) {
    case "string":
      return value.includes("\0") ? "must not contain NUL characters" : null;
    case "number":
      return Number.isFinite(value) ? null : "must be a finite number";
    case "bigint":
      return value >= -INT_MAX && value <= INT_MAX ? null : `must be from -${INT_MAX} to ${INT_MAX}`;
    default:
      return null;
  }
}

function durationProblem({ seconds, nanos }: Duration): string | null {
  if (seconds < -DURATION_SECONDS_MAX || seconds > DURATION_SECONDS_MAX) {
    return `must be a duration of at most ${DURATION_SECONDS_MAX} seconds in either direction`;
  }
  if (Math.abs(nanos) > NANOS_MAX) return `must have nanos from -${NANOS_MAX} to ${NANOS_MAX}, but has ${nanos}`;
  const mixed = (seconds > 0n && nanos < 0) || (seconds < 0n && nanos > 0);
  return mixed ? `must have seconds and nanos of one sign, but has ${seconds} and ${nanos}` : null;
}

function timestampProblem({ seconds, nanos }: Timestamp): string | null {
  if (seconds < TIMESTAMP_SECONDS_MIN || seconds > TIMESTAMP_SECONDS_MAX) {
    return "must be a time from 0001-01-01T00:00:00Z to 9999-12-31T23:59:59Z";
  }
  return nanos < 0 || nanos > NANOS_MAX ? `must have nanos from 0 to ${NANOS_MAX}, but has ${nanos}` : null;
}

function checkKey(key: string, path: string, notes: FieldNote[]): void {
  if (key.includes("\0")) note(notes, path, "must not have a key that contains NUL characters");
}

function note(notes: FieldNote[], field: string, message: string): void {
  if (notes.length < NOTES_MAX) notes.push({ field, message });
}
