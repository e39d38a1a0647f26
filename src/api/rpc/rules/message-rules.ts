/** The rules of a message and of everything within it, compiled once to functions that read the decoded message. */
import { type DescField, type DescMessage, getOption, isFieldSet, type Message } from "@bufbuild/protobuf";
import { FeatureSet_FieldPresence } from "@bufbuild/protobuf/wkt";
import type { NoteList } from "../../../core/job/request/notes.ts";
import type { FieldNote } from "../../../core/job/request/sent.ts";
import {
  type FieldRules,
  field as fieldRules,
  Ignore,
  message as messageRules,
  oneof as oneofRules,
} from "../../../gen/buf/validate/validate_pb.ts";
import { append } from "../../../runtime/lists.ts";
import { expressionRules, type ValueRule, valueRules } from "./value-rules.ts";

/** Makes the path of a value. Almost no value has an error, so that almost no path is made. */
type Path = () => string;
export type Notes = NoteList<FieldNote>;
/** Notes each rule that a value breaks. */
type Check = (value: unknown, path: Path, notes: Notes) => void;

const checks = new WeakMap<DescMessage, Check[]>();
const REQUIRED = "value is required";

/** Notes each rule of the proto files that a message breaks. Throws if there is a rule that is not known here. */
export function checkRules(schema: DescMessage, message: Message, notes: Notes): void {
  for (const check of checksOf(schema)) check(message, () => "", notes);
}

function checksOf(schema: DescMessage): readonly Check[] {
  const known = checks.get(schema);
  if (known !== undefined) return known;
  const own: Check[] = [];
  // A message may have itself as a part.
  checks.set(schema, own);
  try {
    const options = getOption(schema, messageRules);
    if (options.oneof.length > 0) throw new Error(`${schema}: the rule oneof is not known`);
    for (const field of schema.fields) {
      const check = fieldCheck(field);
      if (check !== null) own.push(check);
    }
    const expressions = options.celExpression.map((expression) => ({ expression }));
    append(own, ruleChecks(expressionRules([...options.cel, ...expressions])));
    append(own, oneofChecks(schema));
  } catch (cause) {
    checks.delete(schema);
    throw cause;
  }
  return own;
}

function oneofChecks({ oneofs }: DescMessage): readonly Check[] {
  return oneofs
    .filter((oneof) => getOption(oneof, oneofRules).required)
    .map((oneof) => {
      const message = `exactly one of these fields is required: ${oneof.fields.map(({ name }) => name).join(", ")}`;
      return (holder, path, notes) => {
        const { case: chosen } = (holder as Holder)[oneof.localName] as { readonly case?: string };
        if (chosen === undefined) notes.add(() => ({ field: below(path, oneof.name), message }));
      };
    });
}

type Holder = Readonly<Record<string, unknown>>;

/** Null: the field has no rules, and nothing within it has. */
function fieldCheck(field: DescField): Check | null {
  const rules = getOption(field, fieldRules);
  if (rules.ignore === Ignore.ALWAYS) return null;
  const check = valueCheck(field, rules);
  const isPlain = field.fieldKind === "list" || field.fieldKind === "map";
  const isAlways = isPlain || field.presence === FeatureSet_FieldPresence.IMPLICIT;
  const onlyIfSet = isAlways && rules.ignore === Ignore.IF_ZERO_VALUE;
  if (check === null && !rules.required) return null;
  return (holder, path, notes) => {
    const value = valueIn(field, holder as Holder);
    if ((rules.required || onlyIfSet) && !isFieldSet(holder as Message, field)) {
      if (rules.required) notes.add(() => ({ field: below(path, field.name), message: REQUIRED }));
    } else if (value !== undefined) check?.(value, () => below(path, field.name), notes);
  };
}

/** Undefined: the field is not set. A member of a oneof is stored under the oneof's name. */
function valueIn(field: DescField, holder: Holder): unknown {
  if (field.oneof === undefined) return holder[field.localName];
  const { case: chosen, value } = holder[field.oneof.localName] as { readonly case?: string; readonly value?: unknown };
  return chosen === field.localName ? value : undefined;
}

function valueCheck(field: DescField, rules: FieldRules): Check | null {
  if (field.fieldKind === "list") {
    const items = rules.type.case === "repeated" ? rules.type.value.items : undefined;
    return joined([...ruleChecks(valueRules(field, rules)), listCheck(itemCheck(field, items))]);
  }
  if (field.fieldKind === "map") {
    const { keys, values } = rules.type.case === "map" ? rules.type.value : {};
    const entries = mapCheck(keyCheck(field, keys), itemCheck(field, values));
    return joined([...ruleChecks(valueRules(field, rules)), entries]);
  }
  return itemCheck(field, rules);
}

/** Of a value, an item of a list, or a value of a map. What is within a message comes after its expressions. */
function itemCheck(field: DescField, rules: FieldRules | undefined): Check | null {
  if (rules?.ignore === Ignore.ALWAYS) return null;
  const own = ruleChecks(valueRules(field, rules));
  return field.message === undefined ? joined(own) : joined([...own, messageCheck(field.message)]);
}

function keyCheck(field: DescField, rules: FieldRules | undefined): Check | null {
  return joined(ruleChecks(valueRules(field, rules), "key "));
}

/** JSON and other well-known messages have no rules within them. */
function messageCheck(schema: DescMessage): Check | null {
  if (schema.typeName.startsWith("google.protobuf.")) return null;
  const own = checksOf(schema);
  return (value, path, notes) => {
    for (const check of own) check(value, path, notes);
  };
}

function listCheck(check: Check | null): Check | null {
  if (check === null) return null;
  return (list, path, notes) => {
    for (const [at, item] of (list as readonly unknown[]).entries()) check(item, () => `${path()}[${at}]`, notes);
  };
}

function mapCheck(key: Check | null, value: Check | null): Check | null {
  if (key === null && value === null) return null;
  return (map, path, notes) => {
    for (const name in map as Holder) {
      const at = () => `${path()}[${name}]`;
      key?.(name, at, notes);
      value?.((map as Holder)[name], at, notes);
    }
  };
}

/** `about`: what the message is about, where that is not the value. */
function ruleChecks(rules: readonly ValueRule[], about = ""): readonly Check[] {
  return rules.map(({ holds, message }) => (value, path, notes) => {
    if (!holds(value)) notes.add(() => ({ field: path(), message: about + message }));
  });
}

/** Null: there is nothing to check. */
function joined(parts: readonly (Check | null)[]): Check | null {
  const all = parts.filter((part) => part !== null);
  if (all.length <= 1) return all[0] ?? null;
  return (value, path, notes) => {
    for (const check of all) check(value, path, notes);
  };
}

function below(path: Path, name: string): string {
  const above = path();
  return above === "" ? name : `${above}.${name}`;
}
