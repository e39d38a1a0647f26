import type { DescField, DescMessage, Message } from "@bufbuild/protobuf";
import type { FieldNote } from "../core/job/sent.ts";

const NOTES_MAX = 100;
const STRUCT = "google.protobuf.Struct";

/** Finds what no request may hold because JSON text and databases cannot: NUL characters, and numbers that are not finite. */
export function checkText(schema: DescMessage, message: Message, except?: string): readonly FieldNote[] {
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

/** A scalar, or the JSON of a Struct. */
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
  if (key.includes("\0")) notes.push({ field: path, message: "must not have keys with NUL characters" });
}
