/** The rules of buf.validate for one value, such as a text or a duration, as functions that are made once. */
import { type DescEnum, type DescField, isFieldSet, type Message } from "@bufbuild/protobuf";
import type { Duration } from "@bufbuild/protobuf/wkt";
import {
  type DurationRules,
  type EnumRules,
  type FieldRules,
  FieldRulesSchema,
  type Int32Rules,
  type Int64Rules,
  type MapRules,
  type RepeatedRules,
  type StringRules,
} from "../../../gen/buf/validate/validate_pb.ts";
import { characters } from "../../../runtime/characters.ts";
import { compileExpression } from "./expression.ts";

export type ValueRule = {
  readonly holds: (value: unknown) => boolean;
  /** Tells the fault of a value that breaks the rule. */
  readonly message: string;
};

type RuleKind = Exclude<FieldRules["type"]["case"], undefined>;
/** The rule of each member of a message of rules. Null: another member's rule says it too, or others read it. */
type Makers = Readonly<Record<string, (rules: never, desc: DescEnum | undefined) => ValueRule | null>>;

/**
 * The rules for a value of a field, or for its items, keys or values, in the order in which they are checked. Throws if
 * there is a rule that is not known here. `rules`: undefined if the proto file has none.
 */
export function valueRules(field: DescField, rules: FieldRules | undefined): readonly ValueRule[] {
  if (rules === undefined) return [];
  const expressions = expressionRules([...rules.cel, ...rules.celExpression.map((expression) => ({ expression }))]);
  const { case: kind, value } = rules.type;
  if (kind === undefined) return expressions;
  const makers = MAKERS[kind];
  const declared = FieldRulesSchema.field[kind].message?.fields ?? [];
  const known = declared
    .filter((member) => isFieldSet(value as Message, member))
    .map((member) => {
      const make = makers?.[member.localName];
      if (make === undefined) throw new Error(`${field}: the rule ${kind}.${member.name} is not known`);
      return make(value as never, field.enum);
    });
  return [...expressions, ...known.filter((rule) => rule !== null)];
}

type SentRule = { readonly id?: string; readonly message?: string; readonly expression: string };

/** The rules that are written as expressions. */
export function expressionRules(rules: readonly SentRule[]): readonly ValueRule[] {
  return rules.map(({ id = "", message = "", expression }) => {
    return { holds: compileExpression(expression), message: message || `breaks the rule ${id || expression}` };
  });
}

function rule<Value>(message: string, holds: (value: Value) => boolean): ValueRule {
  return { message, holds: holds as ValueRule["holds"] };
}

const UUID = /^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$/;

const MAKERS: { readonly [Kind in RuleKind]?: Makers } = {
  string: {
    minLen: ({ minLen }: StringRules) => atLeast(minLen, characters, (least) => `must be at least ${least} characters`),
    maxLen: ({ maxLen }: StringRules) => atMost(maxLen, characters, (most) => `must be at most ${most} characters`),
    maxBytes: ({ maxBytes }: StringRules) =>
      atMost<string>(
        maxBytes,
        (text) => Buffer.byteLength(text),
        (most) => `must be at most ${most} bytes`,
      ),
    in: ({ in: words }: StringRules) => oneOf(words),
    uuid: () => rule<string>("must be a valid UUID", (text) => UUID.test(text)),
  },
  enum: {
    definedOnly: allowedWords,
    notIn: (rules: EnumRules, desc) => (rules.definedOnly ? null : allowedWords(rules, desc)),
  },
  repeated: {
    minItems: ({ minItems }: RepeatedRules) =>
      atLeast(minItems, length, (least) => `must contain at least ${least} item(s)`),
    maxItems: ({ maxItems }: RepeatedRules) =>
      atMost(maxItems, length, (most) => `must contain no more than ${most} item(s)`),
    unique: () =>
      rule<readonly unknown[]>(
        "repeated value must contain unique items",
        (list) => new Set(list).size === list.length,
      ),
    items: () => null,
  },
  map: {
    minPairs: ({ minPairs }: MapRules) => atLeast(minPairs, pairs, (least) => `map must be at least ${least} entries`),
    maxPairs: ({ maxPairs }: MapRules) => atMost(maxPairs, pairs, (most) => `map must be at most ${most} entries`),
    keys: () => null,
    values: () => null,
  },
  int32: rangeOf<Int32Rules>((value) => Number(value), String),
  int64: rangeOf<Int64Rules>((value) => BigInt(value as bigint), String),
  duration: rangeOf<DurationRules>(
    (value) => nanosOf(value as Duration),
    (nanos) => `${Number(nanos) / 1e9}s`,
  ),
};

function oneOf(words: readonly string[]): ValueRule {
  const allowed = new Set(words);
  return rule<string>(`must be in list [${words.join(", ")}]`, (text) => allowed.has(text));
}

type Measure<Value> = (value: Value) => number;
type Words = (limit: bigint) => string;

function atLeast<Value>(least: bigint, measure: Measure<Value>, words: Words): ValueRule {
  const limit = Number(least);
  return rule<Value>(words(least), (value) => measure(value) >= limit);
}

function atMost<Value>(most: bigint, measure: Measure<Value>, words: Words): ValueRule {
  const limit = Number(most);
  return rule<Value>(words(most), (value) => measure(value) <= limit);
}

function length(list: readonly unknown[]): number {
  return list.length;
}

function pairs(map: object): number {
  return Object.keys(map).length;
}

type RangeRules = Pick<Int64Rules | Int32Rules | DurationRules, "lessThan" | "greaterThan">;
type Bound = { readonly limit: bigint | number; readonly orEqual: boolean; readonly words: string };

/** Both ends of a range are one rule, with one message. The rule of the lower end is left out if there is an upper. */
function rangeOf<Rules extends RangeRules>(
  read: (value: unknown) => bigint | number,
  show: (value: bigint | number) => string,
): Makers {
  const bound = ({ case: kind, value }: RangeRules["lessThan"] | RangeRules["greaterThan"]): Bound | null => {
    if (kind === undefined) return null;
    const limit = read(value);
    const orEqual = kind === "lte" || kind === "gte";
    const than = kind === "lt" || kind === "lte" ? "less than" : "greater than";
    return { limit, orEqual, words: `${than}${orEqual ? " or equal to" : ""} ${show(limit)}` };
  };
  const range = ({ greaterThan, lessThan }: Rules): ValueRule => {
    const [least, most] = [bound(greaterThan), bound(lessThan)];
    if (least !== null && most !== null && most.limit < least.limit) throw new Error("a range must not be empty");
    const words = [least, most].flatMap((one) => (one === null ? [] : [one.words]));
    return rule<unknown>(`must be ${words.join(" and ")}`, (value) => {
      const number = read(value);
      if (least !== null && (number < least.limit || (!least.orEqual && number === least.limit))) return false;
      return most === null || number < most.limit || (most.orEqual && number === most.limit);
    });
  };
  const upper = (rules: Rules) => (rules.greaterThan.case === undefined ? range(rules) : null);
  return { gt: range, gte: range, lt: upper, lte: upper };
}

/** Nanoseconds, with one sign. */
function nanosOf({ seconds, nanos }: Duration): bigint {
  return seconds * 1_000_000_000n + BigInt(nanos);
}

/** A client that means the default omits the field. */
function allowedWords({ definedOnly, notIn }: EnumRules, desc: DescEnum | undefined): ValueRule {
  const values = desc?.values ?? [];
  const words = values.filter(({ number }) => number !== 0).map(({ name, number }) => `${name} (${number})`);
  const defined = new Set(values.map(({ number }) => number));
  return rule<number>(
    `must be one of ${words.join(", ")}`,
    (number) => (!definedOnly || defined.has(number)) && !notIn.includes(number),
  );
}
