import type { DescMessage, Message } from "@bufbuild/protobuf";
import type { Path } from "@bufbuild/protobuf/reflect";
import { createValidator, type Violation } from "@bufbuild/protovalidate";
import { joinNotes } from "../../core/job/notes.ts";
import type { FieldNote } from "../../core/job/sent.ts";
import { checkValues } from "./check-values.ts";
import { matchPattern } from "./match-pattern.ts";

const validator = createValidator({ regexMatch: matchPattern });
/** Rules of enums that allow every word but the unspecified one. */
const ENUM_RULES: ReadonlySet<string> = new Set(["enum.defined_only", "enum.not_in"]);

/**
 * Returns everything in a request that breaks a constraint of the proto files, or that cannot be stored. Paths consist
 * of the request's field names. Does not check the values within the field named `except`; its handler does.
 */
export function checkRequest(schema: DescMessage, message: Message, except?: string): readonly FieldNote[] {
  const values = checkValues(schema, message, except);
  const result = validator.validate(schema, message);
  if (result.kind === "invalid") return mergeNotes(values, result.violations.map(toNote));
  // A rule cannot be evaluated for a value such as a duration that is out of range.
  if (result.kind === "error" && values.length === 0) throw result.error;
  return values;
}

/** Returns the notes of `first`, then those of `second` whose fields `first` does not name. */
export function mergeNotes(first: readonly FieldNote[], second: readonly FieldNote[]): readonly FieldNote[] {
  const fields = new Set(first.map((note) => note.field));
  return joinNotes(
    first,
    second.filter((note) => note.more !== undefined || !fields.has(note.field)),
  );
}

function toNote(violation: Violation): FieldNote {
  const about = violation.forKey ? "key " : "";
  const message = allowedWords(violation) ?? (violation.message || `breaks the rule ${violation.ruleId}`);
  return { field: pathText(violation.field), message: about + message };
}

/** Names what is allowed, where the text of the rule does not. Null: it does. */
function allowedWords({ field: path, ruleId }: Violation): string | null {
  const of = path.findLast((part) => part.kind === "field" || part.kind === "oneof");
  if (of?.kind === "oneof") {
    const names = of.fields.map(({ name }) => name).join(", ");
    return ruleId === "required" ? `exactly one of these fields is required: ${names}` : null;
  }
  if (!ENUM_RULES.has(ruleId) || of?.enum === undefined) return null;
  // A client that means the default omits the field.
  const words = of.enum.values.filter(({ number }) => number !== 0).map(({ name, number }) => `${name} (${number})`);
  return `must be one of ${words.join(", ")}`;
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
