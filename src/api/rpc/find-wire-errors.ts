/**
 * Finds values in the bytes of a request that its decoded message cannot show: text that is not UTF-8, which stops the
 * decoder without a word about the field, and a google.protobuf.Value without a kind, which it turns into null.
 */
import { isUtf8 } from "node:buffer";
import { type DescField, type DescMessage, ScalarType } from "@bufbuild/protobuf";
import { BinaryReader, WireType } from "@bufbuild/protobuf/wire";
import type { FieldNote } from "../../core/job/request/sent.ts";

/** As in the decoder. */
const DEPTH_MAX = 100;
const NOTES_MAX = 100;
const VALUE = "google.protobuf.Value";
const LIST_VALUE = "google.protobuf.ListValue";
const STRUCT = "google.protobuf.Struct";
const NOT_UTF8 = "must be valid UTF-8";
const NO_KIND = "must be null, a number, a text, a boolean, a list or an object, but has no kind of value";

/** Makes the path of a value. Almost no value has an error, so that almost no path is made. */
type Path = () => string;
type Part = { readonly schema: DescMessage; readonly bytes: Uint8Array; readonly path: Path; readonly depth: number };

/** Returns a note for each such value, up to the first place where the bytes are no message at all. */
export function findWireErrors(schema: DescMessage, bytes: Uint8Array): readonly FieldNote[] {
  const notes: FieldNote[] = [];
  try {
    walk({ schema, bytes, path: () => "", depth: 1 }, notes);
  } catch {
    // The decoder has refused these bytes too, and says why.
  }
  return notes;
}

function walk({ schema, bytes, path, depth }: Part, notes: FieldNote[]): void {
  if (depth > DEPTH_MAX) return;
  const reader = new BinaryReader(bytes);
  const items = new Map<number, number>();
  let isSet = schema.typeName !== VALUE;
  while (reader.pos < reader.len && notes.length < NOTES_MAX) {
    const [number, wireType] = reader.tag();
    const field = schema.fields.find((one) => one.number === number);
    isSet ||= field !== undefined;
    if (field === undefined || wireType !== WireType.LengthDelimited) {
      reader.skip(wireType, number);
      continue;
    }
    const item = items.get(number) ?? 0;
    items.set(number, item + 1);
    walkField(field, { schema, bytes: reader.bytes(), path, depth }, item, notes);
  }
  if (!isSet) notes.push({ field: path(), message: NO_KIND });
}

/** `part` is the message that holds the field; its bytes are those of the field. */
function walkField(field: DescField, part: Part, item: number, notes: FieldNote[]): void {
  const path = () => pathOf(field, part, item);
  if (field.fieldKind === "map") walkEntry(field, { ...part, path }, notes);
  else walkItem(field, { ...part, path }, notes);
}

function walkEntry(field: DescField & { fieldKind: "map" }, part: Part, notes: FieldNote[]): void {
  const { key, value } = readEntry(part.bytes);
  if (field.mapKey === ScalarType.STRING && !isUtf8(key)) {
    notes.push({ field: part.path(), message: "must have keys that are valid UTF-8" });
  }
  const path = () => {
    const name = Buffer.from(key).toString();
    return field.parent.typeName === STRUCT ? `${part.path()}.${name}` : `${part.path()}[${name}]`;
  };
  walkItem(field, { ...part, bytes: value, path }, notes);
}

/** An entry of a map is a message with a key in field 1 and a value in field 2. */
function readEntry(bytes: Uint8Array): { readonly key: Uint8Array; readonly value: Uint8Array } {
  const parts = [new Uint8Array(), new Uint8Array()] as [Uint8Array, Uint8Array];
  const reader = new BinaryReader(bytes);
  while (reader.pos < reader.len) {
    const [number, wireType] = reader.tag();
    if (wireType === WireType.LengthDelimited && number <= 2) parts[number - 1] = reader.bytes();
    else reader.skip(wireType, number);
  }
  return { key: parts[0], value: parts[1] };
}

function walkItem(field: DescField, { bytes, path, depth }: Part, notes: FieldNote[]): void {
  if (field.message !== undefined) walk({ schema: field.message, bytes, path, depth: depth + 1 }, notes);
  else if (field.scalar === ScalarType.STRING && !isUtf8(bytes)) notes.push({ field: path(), message: NOT_UTF8 });
}

/** Paths within a Struct are those of its JSON: `kind_spec.list[2]`. */
function pathOf(field: DescField, { schema, path }: Part, item: number): string {
  const parent = path();
  if (schema.typeName === VALUE || schema.typeName === STRUCT) return parent;
  if (schema.typeName === LIST_VALUE) return `${parent}[${item}]`;
  const at = parent === "" ? field.name : `${parent}.${field.name}`;
  return field.fieldKind === "list" ? `${at}[${item}]` : at;
}
