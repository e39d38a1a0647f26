import type { DescField, DescMessage, Message } from "@bufbuild/protobuf";
import type { Path } from "@bufbuild/protobuf/reflect";
import { createValidator, type Violation } from "@bufbuild/protovalidate";
import type { FieldNote } from "../../core/job/sent.ts";

const validator = createValidator();
const NOTES_MAX = 100;
const STRUCT = "google.protobuf.Struct";

/**
 * Returns everything in a request that breaks a constraint of the proto files, or that cannot be stored. Paths consist
 * of the request's field names. Does not check the text within the field named `except`; its handler does.
 */
export function checkRequest(schema: DescMessage, message: Message, except?: string): readonly FieldNote[] {
  const result = validator.validate(schema, message);
  if (result.kind === "error") throw result.error;
  const violations = result.kind === "invalid" ? result.violations.map(toNote) : [];
  return mergeNotes(violations, checkText(schema, message, except));
}

/** Returns the notes of `first`, then those of `second` whose fields `first` does not name. */
export function mergeNotes(first: readonly FieldNote[], second: readonly FieldNote[]): readonly FieldNote[] {
  const fields = new Set(first.map((note) => note.field));
  return [...first, ...second.filter((note) => !fields.has(note.field))];
}

function toNote(violation: Violation): FieldNote {
  const about = violation.forKey ? "key " : "";
  return {
    field: pathText(violation.field),
    message: about + (violation.message || `breaks the rule ${violation.ruleId}`),
  };
}

/** `job.spec.replica_specs[Worker].replicas`. */
function pathText(path: Path): string {
  let text = "";
  for (const part of path) {
    if (part.kind === "list_sub") text += `[${part.index}]`;
    else if (part.kind === "map_sub") text += `[${part.key}]`;
    else text += text === "" ? part.name : `.${part.name}`;
  }
  return text;
}

/**
 * Returns the fields that hold NUL characters or numbers that are not finite: JSON and the database cannot store them.
 */
function checkText(schema: DescMessage, message: Message, except?: string): readonly FieldNote[] {
  const notes: FieldNote[] = [];
  walkMessage({ fields: schema.fields.filter((field) => field.localName !== except) }, message, "", notes);
  return notes;
}

function walkMessage(schema: Pick<DescMessage, "fields">, message: object, path: string, notes: FieldNote[]): void {
  for (const field of schema.fields) {
    const value = (message as Record<string, unknown>)[field.localName];
    if (value !== undefined) walkField(field, value, path === "" ? field.name : `${path}.${field.name}`, notes);
  }
}

function walkField(field: DescField, value: unknown, path: string, notes: FieldNote[]): void {
  const schema = field.fieldKind === "scalar" || field.fieldKind === "enum" ? undefined : field.message;
  const walk = (item: unknown, at: string) => {
    if (schema === undefined || schema.typeName === STRUCT) walkJson(item, at, notes);
    else walkMessage(schema, item as object, at, notes);
  };
  if (field.fieldKind === "list") {
    for (const [at, item] of (value as unknown[]).entries()) walk(item, `${path}[${at}]`);
  } else if (field.fieldKind === "map") {
    for (const [key, item] of Object.entries(value as Record<string, unknown>)) {
      checkKey(key, path, notes);
      walk(item, `${path}[${key}]`);
    }
  } else {
    walk(value, path);
  }
}

/** Checks a scalar, or the JSON of a Struct. */
function walkJson(value: unknown, path: string, notes: FieldNote[]): void {
  if (notes.length >= NOTES_MAX) return;
  if (typeof value === "string" && value.includes("\0"))
    notes.push({ field: path, message: "must not contain NUL characters" });
  if (typeof value === "number" && !Number.isFinite(value))
    notes.push({ field: path, message: "must be a finite number" });
  if (Array.isArray(value)) {
    for (const [at, item] of value.entries()) walkJson(item, `${path}[${at}]`, notes);
  } else if (typeof value === "object" && value !== null && !ArrayBuffer.isView(value)) {
    for (const [key, item] of Object.entries(value)) {
      checkKey(key, path, notes);
      walkJson(item, `${path}.${key}`, notes);
    }
  }
}

function checkKey(key: string, path: string, notes: FieldNote[]): void {
  if (key.includes("\0")) notes.push({ field: path, message: "must not have a key that contains NUL characters" });
}
