/** Turns messages, enums and fields of the proto files into schemas of OpenAPI, with their comments and rules. */
import { type DescEnum, type DescField, type DescMessage, getOption, hasOption, ScalarType } from "@bufbuild/protobuf";
import { getComments } from "@bufbuild/protoplugin";
import { type FieldRules, field as fieldRules } from "../src/gen/buf/validate/validate_pb.ts";

export type Schema = { readonly [member: string]: unknown };

/** The forms in JSON of messages that have one of their own. */
const WELL_KNOWN: Readonly<Record<string, Schema>> = {
  "google.protobuf.Timestamp": { type: "string", format: "date-time" },
  "google.protobuf.Duration": { type: "string", pattern: "^-?[0-9]+(\\.[0-9]{1,9})?s$", examples: ["90s"] },
  "google.protobuf.Struct": { type: "object", additionalProperties: true },
  "google.protobuf.Value": { description: "Any JSON." },
  "google.protobuf.ListValue": { type: "array", items: {} },
  "google.protobuf.Empty": { type: "object" },
  "google.protobuf.FieldMask": {
    type: "string",
    description: "Names of fields with commas between them, in lowerCamelCase.",
  },
  "google.protobuf.Any": {
    type: "object",
    properties: { "@type": { type: "string" } },
    additionalProperties: true,
  },
};
const WRAPPER = /^google\.protobuf\.(\w+)Value$/;
const BIG: ReadonlySet<ScalarType> = new Set([
  ScalarType.INT64,
  ScalarType.UINT64,
  ScalarType.SINT64,
  ScalarType.FIXED64,
  ScalarType.SFIXED64,
]);

/** Collects the schemas of all messages and enums that it is asked for, and of those within them. */
export class Schemas {
  readonly #byName = new Map<string, Schema>();

  /** By name, in the order of their names. */
  all(): Readonly<Record<string, Schema>> {
    return Object.fromEntries([...this.#byName].sort(([one], [other]) => (one < other ? -1 : 1)));
  }

  message(desc: DescMessage): Schema {
    const own = WELL_KNOWN[desc.typeName];
    if (own !== undefined) return own;
    const wrapped = WRAPPER.test(desc.typeName) ? desc.fields[0] : undefined;
    if (wrapped !== undefined) return this.#single(wrapped, undefined);
    if (!this.#byName.has(desc.typeName)) {
      this.#byName.set(desc.typeName, {});
      this.#byName.set(desc.typeName, this.#object(desc));
    }
    return { $ref: `#/components/schemas/${desc.typeName}` };
  }

  #object(desc: DescMessage): Schema {
    const fields = desc.fields.map((field) => [field.jsonName, this.#field(field)] as const);
    const required = desc.fields.filter((field) => rulesOf(field)?.required === true).map(({ jsonName }) => jsonName);
    const oneofs = desc.oneofs.map((one) => {
      return `At most one of these is set: ${one.fields.map(({ jsonName }) => jsonName).join(", ")}.`;
    });
    return {
      type: "object",
      ...described([commentOf(desc), ...oneofs]),
      properties: Object.fromEntries(fields),
      ...(required.length === 0 ? {} : { required }),
      additionalProperties: false,
    };
  }

  #enum(desc: DescEnum): Schema {
    if (!this.#byName.has(desc.typeName)) {
      const values = desc.values.map((value) => {
        const comment = commentOf(value);
        return comment === "" ? "" : `${value.name}: ${comment}`;
      });
      this.#byName.set(desc.typeName, {
        type: "string",
        ...described([commentOf(desc), ...values]),
        enum: desc.values.map(({ name }) => name),
      });
    }
    return { $ref: `#/components/schemas/${desc.typeName}` };
  }

  #field(field: DescField): Schema {
    const rules = rulesOf(field);
    const words = [commentOf(field), ...wordsOf(rules)];
    const schema = this.#shape(field, rules);
    return { ...schema, ...described([...words, String(schema["description"] ?? "")]) };
  }

  #shape(field: DescField, rules: FieldRules | undefined): Schema {
    const of = rules?.type;
    if (field.fieldKind === "list") {
      const { minItems, maxItems, items } = (of?.case === "repeated" ? of.value : {}) as ListRules;
      return { type: "array", items: this.#single(field, items), ...sizes({ minItems, maxItems }) };
    }
    if (field.fieldKind === "map") {
      const { minPairs, maxPairs, keys, values } = (of?.case === "map" ? of.value : {}) as MapSizes;
      const names = textRules(keys);
      return {
        type: "object",
        additionalProperties: this.#single(field, values),
        ...(Object.keys(names).length === 0 ? {} : { propertyNames: names }),
        ...sizes({ minProperties: minPairs, maxProperties: maxPairs }),
      };
    }
    return this.#single(field, rules);
  }

  /** One value: that of the field, or of its items or entries. */
  #single(field: DescField, rules: FieldRules | undefined): Schema {
    if (field.message !== undefined) return this.message(field.message);
    if (field.enum !== undefined) return this.#enum(field.enum);
    return { ...scalarSchema(field.scalar), ...textRules(rules), ...numberRules(rules) };
  }
}

/** Empty parts are left out. */
export function described(parts: readonly string[]): Schema {
  const description = parts.filter((part) => part !== "").join("\n\n");
  return description === "" ? {} : { description };
}

export function commentOf(desc: Parameters<typeof getComments>[0]): string {
  const { leading, trailing } = getComments(desc);
  return (leading ?? trailing ?? "")
    .split("\n")
    .map((line) => line.trim())
    .join("\n")
    .trim();
}

type ListRules = { minItems?: bigint; maxItems?: bigint; items?: FieldRules };
type MapSizes = { minPairs?: bigint; maxPairs?: bigint; keys?: FieldRules; values?: FieldRules };
type TextSizes = {
  minLen?: bigint;
  maxLen?: bigint;
  minBytes?: bigint;
  maxBytes?: bigint;
  pattern?: string;
  wellKnown?: { readonly case?: string | undefined };
};

function rulesOf(field: DescField): FieldRules | undefined {
  return hasOption(field, fieldRules) ? getOption(field, fieldRules) : undefined;
}

function scalarSchema(scalar: ScalarType | undefined): Schema {
  if (scalar === ScalarType.BOOL) return { type: "boolean" };
  if (scalar === ScalarType.STRING) return { type: "string" };
  if (scalar === ScalarType.BYTES) return { type: "string", contentEncoding: "base64" };
  if (scalar === ScalarType.DOUBLE || scalar === ScalarType.FLOAT) return { type: "number" };
  if (scalar !== undefined && BIG.has(scalar)) return { type: ["string", "integer"], format: "int64" };
  return { type: "integer", format: "int32" };
}

/** A text of so many bytes has at most as many characters. */
function textRules(rules: FieldRules | undefined): Schema {
  if (rules?.type.case !== "string") return {};
  const { minLen, maxLen, maxBytes, pattern, wellKnown }: TextSizes = rules.type.value;
  const most = Number(maxLen ?? 0n) || maxBytes;
  return {
    ...sizes({ minLength: minLen, maxLength: typeof most === "number" ? BigInt(most) : most }),
    ...(pattern === undefined || pattern === "" ? {} : { pattern }),
    ...(wellKnown?.case === "uuid" ? { format: "uuid" } : {}),
  };
}

const RANGES = { gt: "exclusiveMinimum", gte: "minimum", lt: "exclusiveMaximum", lte: "maximum" } as const;
const NUMBERS = /^(u|s)?(int|fixed)(32|64)$|^float$|^double$/;

function numberRules(rules: FieldRules | undefined): Schema {
  if (rules === undefined || !NUMBERS.test(rules.type.case ?? "")) return {};
  return Object.fromEntries(limitsOf(rules).map(([rule, value]) => [RANGES[rule], Number(value)] as const));
}

/** Bounds of numbers and durations: rules and their values. */
function limitsOf(rules: FieldRules): readonly (readonly [keyof typeof RANGES, unknown])[] {
  const { lessThan, greaterThan } = rules.type.value as {
    readonly lessThan?: { readonly case?: string; readonly value?: unknown };
    readonly greaterThan?: { readonly case?: string; readonly value?: unknown };
  };
  return [greaterThan, lessThan].flatMap((one) =>
    one?.case === undefined ? [] : [[one.case as keyof typeof RANGES, one.value] as const],
  );
}

const WORDS = { gt: "More than", gte: "At least", lt: "Less than", lte: "At most" } as const;

/** Rules that schemas cannot hold, as sentences. */
function wordsOf(rules: FieldRules | undefined): readonly string[] {
  if (rules === undefined) return [];
  const cel = rules.cel.filter(({ message }) => message !== "").map(({ message }) => `Rule: ${message}.`);
  if (rules.type.case !== "duration") return cel;
  const limits = limitsOf(rules).map(([rule, value]) => {
    const { seconds, nanos } = value as { readonly seconds: bigint; readonly nanos: number };
    return `${WORDS[rule]} ${Number(seconds) + nanos / 1e9} s.`;
  });
  return [...limits, ...cel];
}

function sizes(of: Readonly<Record<string, bigint | undefined>>): Schema {
  return Object.fromEntries(
    Object.entries(of).flatMap(([name, size]) => (size === undefined || size === 0n ? [] : [[name, Number(size)]])),
  );
}
