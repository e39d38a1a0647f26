/**
 * The limits of requests, as the proto files declare them: the sizes among the rules of buf.validate, and
 * `content_bounds` where the parts of a field have no limits of their own.
 */
import { type DescField, type DescMessage, getOption, hasOption, ScalarType } from "@bufbuild/protobuf";
import { type FieldRules, field as fieldRules, type MapRules } from "../../gen/buf/validate/validate_pb.ts";
import { type ContentBounds, content_bounds } from "../../gen/gangway/v1/bounds_pb.ts";
import { getOrCreate } from "../../runtime/get-or-create.ts";

/** How the decoder reads one value of a field: as a varint, as so many bytes, or as bytes after their length. */
export type WireForm = "varint" | 4 | 8 | "text" | "message";

/** The limits of one field. */
export type FieldBounds = {
  /** The place of the field among those of its message. */
  readonly at: number;
  readonly name: string;
  readonly kind: "one" | "list" | "map";
  /** Items of a list, entries of a map. */
  readonly itemsMax: number;
  readonly key: WireForm;
  readonly keyBytesMax: number;
  /** The form of the value, of each item, or of the value of each entry. */
  readonly form: WireForm;
  /** Of a text. */
  readonly bytesMax: number;
  readonly message: DescMessage | null;
  /** Limits everything below the field. Null: its parts have limits of their own. */
  readonly content: ContentBounds | null;
  /** The rules of sizes that the field lacks. */
  readonly undeclared: readonly string[];
};

/** Limits of fields that declare none, which are those of standard services such as health and reflection. */
const UNDECLARED = { bytesMax: 4_096, itemsMax: 1_000 };
/** A character of UTF-8 has at most four bytes. */
const BYTES_OF_A_CHARACTER = 4;

const known = new WeakMap<DescMessage, ReadonlyMap<number, FieldBounds>>();

/** The limits of a message's fields, by their numbers. */
export function boundsOf(schema: DescMessage): ReadonlyMap<number, FieldBounds> {
  return getOrCreate(
    known,
    schema,
    () => new Map(schema.fields.map((field, at) => [field.number, fieldBounds(field, at)])),
  );
}

function fieldBounds(field: DescField, at: number): FieldBounds {
  const rules = hasOption(field, fieldRules) ? getOption(field, fieldRules) : undefined;
  const content = hasOption(field, content_bounds) ? getOption(field, content_bounds) : null;
  const sizes = declaredSizes(field, rules);
  const undeclared = content === null ? Object.keys(sizes).filter((size) => sizes[size as SizeName] === undefined) : [];
  const { max_items, max_pairs, max_bytes } = sizes;
  return {
    at,
    name: field.name,
    kind: field.fieldKind === "list" || field.fieldKind === "map" ? field.fieldKind : "one",
    itemsMax: max_items ?? max_pairs ?? UNDECLARED.itemsMax,
    key: field.fieldKind === "map" ? scalarForm(field.mapKey) : "varint",
    keyBytesMax: sizes["keys.max_bytes"] ?? UNDECLARED.bytesMax,
    form: formOf(field),
    bytesMax: max_bytes ?? sizes["items.max_bytes"] ?? sizes["values.max_bytes"] ?? UNDECLARED.bytesMax,
    message: field.message ?? null,
    content,
    undeclared,
  };
}

/** The rules of buf.validate that limit what is read here. */
type SizeName =
  | "content_bounds"
  | "max_bytes"
  | "max_items"
  | "items.max_bytes"
  | "max_pairs"
  | "keys.max_bytes"
  | "values.max_bytes";

/** The sizes that a field should declare. Undefined: it does not. */
function declaredSizes(field: DescField, rules: FieldRules | undefined): Sizes {
  const isText = formOf(field) === "text";
  const type = rules?.type;
  if (field.fieldKind === "map") return mapSizes(field, type?.case === "map" ? type.value : undefined);
  // The content of JSON has no declarations of its own.
  if (field.message?.typeName.startsWith("google.protobuf.Struct")) return { content_bounds: undefined };
  if (field.fieldKind !== "list") return isText ? { max_bytes: textBytesMax(rules) } : {};
  const list = type?.case === "repeated" ? type.value : undefined;
  const items = { max_items: sizeOf(list?.maxItems) };
  return isText ? { ...items, "items.max_bytes": textBytesMax(list?.items) } : items;
}

function mapSizes(field: DescField & { readonly fieldKind: "map" }, rules: MapRules | undefined): Sizes {
  const keys = scalarForm(field.mapKey) === "text" ? { "keys.max_bytes": textBytesMax(rules?.keys) } : {};
  const values = formOf(field) === "text" ? { "values.max_bytes": textBytesMax(rules?.values) } : {};
  return { max_pairs: sizeOf(rules?.maxPairs), ...keys, ...values };
}

type Sizes = { readonly [Name in SizeName]?: number | undefined };

function textBytesMax(rules: FieldRules | undefined): number | undefined {
  const type = rules?.type;
  if (type?.case === "bytes") return sizeOf(type.value.maxLen);
  if (type?.case !== "string") return undefined;
  const chars = sizeOf(type.value.maxLen);
  return sizeOf(type.value.maxBytes) ?? (chars === undefined ? undefined : chars * BYTES_OF_A_CHARACTER);
}

/** Undefined: the rule is not set. No size that is declared is 0. */
function sizeOf(max: bigint | undefined): number | undefined {
  return max === undefined || max === 0n ? undefined : Number(max);
}

function formOf(field: DescField): WireForm {
  if (field.message !== undefined) return "message";
  return field.scalar === undefined ? "varint" : scalarForm(field.scalar);
}

function scalarForm(scalar: ScalarType): WireForm {
  switch (scalar) {
    case ScalarType.STRING:
    case ScalarType.BYTES:
      return "text";
    case ScalarType.DOUBLE:
    case ScalarType.FIXED64:
    case ScalarType.SFIXED64:
      return 8;
    case ScalarType.FLOAT:
    case ScalarType.FIXED32:
    case ScalarType.SFIXED32:
      return 4;
    default:
      return "varint";
  }
}
