/** Values of single fields: what a field's rules allow, the values just beyond, and odd ones. */
import { type DescEnum, type DescField, getOption, ScalarType } from "@bufbuild/protobuf";
import { type FieldRules, field as rulesExtension } from "../../../src/gen/buf/validate/validate_pb.ts";
import type { Chance } from "./chance.ts";

const INT32 = [0, 1, -1, 2, 3, 2 ** 31 - 1, -(2 ** 31), 999, 1000, 1001, 65_536];
const INT64 = [0n, 1n, -1n, 2n, 2n ** 31n, 2n ** 53n - 1n, 2n ** 53n, 2n ** 63n - 1n, -(2n ** 63n)];
const DOUBLES = [0, -0, 1, -1.5, 1e308, 5e-324, Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY];
const WORDS = ["default", "a", "x-1", "Worker", "Worker/0", "gpu/h100", "h100-east", "name", "create_time desc", "*"];
const ODD_TEXTS = [
  "",
  " ",
  "\u0000",
  "a\u0000b",
  "a\nb",
  "\u2028",
  "\u202e",
  "\ufeff",
  "\ufffd",
  "é",
  "e\u0301",
  "🚀",
  "Ａ",
  "İ",
  "__proto__",
  "constructor",
  "toString",
  "hasOwnProperty",
  "../../etc/passwd",
  "%s%n%00",
  "' or 1=1 --",
  "\\",
  '"',
  "{{ .Inputs.x }}",
  "$(HOME)",
  "job/default/a/1",
  "null",
  "-1",
  "1e999",
  "0x10",
  "00",
  "99999999999999999999",
  "a/b/c",
  "a:b",
  "A_B",
  "-a",
  "a-",
  "a..b",
  "eyJ9",
];
const LENGTHS = [1, 2, 48, 49, 50, 51, 62, 63, 64, 65, 127, 128, 129, 253, 254, 256, 257, 512, 513, 1024, 1025, 5000];
/** As long as fields without a bound of their own may get; rare, because such a request costs a thousand others. */
const LONG_LENGTHS = [70_000, 300_000, 1_100_000];

export function oddText(chance: Chance): string {
  const kind = chance.int(0, 9);
  if (kind < 5) return chance.pick(ODD_TEXTS);
  const unit = chance.pick(["a", "a", "0", "-", ".", "/", "é", "🚀", "\u0001", "A"]);
  if (kind < 9) return unit.repeat(chance.pick(LENGTHS));
  return chance.is(0.05) ? unit.repeat(chance.pick(LONG_LENGTHS)) : String(chance.int(0, 1e9));
}

export function scalar(chance: Chance, field: DescField, type: ScalarType): unknown {
  const rules = rulesOf(field);
  switch (type) {
    case ScalarType.STRING:
      return text(chance, rules);
    case ScalarType.BOOL:
      return chance.is(0.5);
    case ScalarType.BYTES:
      return chance.bytes(chance.int(0, 40));
    case ScalarType.DOUBLE:
    case ScalarType.FLOAT:
      return type === ScalarType.FLOAT ? Math.fround(chance.pick([0, 1, -1])) : chance.pick(DOUBLES);
    case ScalarType.INT64:
    case ScalarType.SINT64:
    case ScalarType.SFIXED64:
      return BigInt.asIntN(64, around(chance, rules) ?? chance.pick(INT64));
    case ScalarType.UINT64:
    case ScalarType.FIXED64:
      return BigInt.asUintN(64, around(chance, rules) ?? chance.pick(INT64));
    case ScalarType.UINT32:
    case ScalarType.FIXED32:
      return Number(around(chance, rules) ?? chance.pick(INT32)) >>> 0;
    default:
      return Number(around(chance, rules) ?? chance.pick(INT32)) | 0;
  }
}

export function enumNumber(chance: Chance, { values }: DescEnum): number {
  return chance.is(0.85) ? chance.pick(values).number : chance.pick([-1, 7, 99, 2 ** 31 - 1, -(2 ** 31)]);
}

/** How many items a list or a map gets: few, and at times as many as its rules allow, or one more. */
export function size(chance: Chance, field: DescField): number {
  if (chance.is(0.96)) return chance.int(0, 3);
  const rules = rulesOf(field);
  const max = boundOf(rules?.type.value, "maxItems") ?? boundOf(rules?.type.value, "maxPairs") ?? 100n;
  return Number(max) + chance.pick([-1, 0, 1]);
}

function rulesOf(field: DescField): FieldRules | undefined {
  return getOption(field, rulesExtension);
}

function text(chance: Chance, rules: FieldRules | undefined): string {
  const { type } = rules ?? {};
  if (type?.case === "string") {
    if (type.value.in.length > 0 && chance.is(0.8)) return chance.pick(type.value.in);
    const longest = boundOf(type.value, "maxLen") ?? boundOf(type.value, "maxBytes");
    if (longest !== undefined && chance.is(0.2)) return "a".repeat(Number(longest) + chance.int(-1, 1));
    if (type.value.wellKnown.case === "uuid") return chance.is(0.5) ? uuid(chance) : oddText(chance);
  }
  return chance.is(0.5) ? chance.pick(WORDS) : oddText(chance);
}

function uuid(chance: Chance): string {
  const hex = chance.bytes(16).toString("hex");
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5");
}

/** A number at, just within or just beyond a bound of the field's rules. Undefined: the rules name none. */
function around(chance: Chance, rules: FieldRules | undefined): bigint | undefined {
  const of = rules?.type.value as NumberRules | undefined;
  const bounds = [of?.greaterThan?.value, of?.lessThan?.value].flatMap((bound) =>
    typeof bound === "bigint" || typeof bound === "number" ? [BigInt(bound)] : [],
  );
  if (bounds.length === 0 || chance.is(0.3)) return undefined;
  return chance.pick(bounds) + BigInt(chance.int(-1, 1));
}

type NumberRules = {
  readonly greaterThan?: { readonly value?: unknown };
  readonly lessThan?: { readonly value?: unknown };
};

function boundOf(rules: unknown, name: string): bigint | undefined {
  const value = (rules as Readonly<Record<string, unknown>> | undefined)?.[name];
  return typeof value === "bigint" && value > 0n ? value : undefined;
}
