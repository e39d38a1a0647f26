import type { DescMessage, Message } from "@bufbuild/protobuf";
import type { Path } from "@bufbuild/protobuf/reflect";
import { createValidator, type Violation } from "@bufbuild/protovalidate";
import type { FieldNote } from "../core/job/sent.ts";
import { checkText } from "./request-text.ts";

const validator = createValidator();

/**
 * Everything that the constraints of the proto files find wrong with a request, with paths in the request's own field names. What a field
 * named `except` holds is left to whoever reads it.
 */
export function checkRequest(schema: DescMessage, message: Message, except?: string): readonly FieldNote[] {
  const result = validator.validate(schema, message);
  if (result.kind === "error") throw result.error;
  const violations = result.kind === "invalid" ? result.violations.map(toNote) : [];
  return mergeNotes(violations, checkText(schema, message, except));
}

/** The notes of `first`, then those of `second` about fields that `first` says nothing about. */
export function mergeNotes(first: readonly FieldNote[], second: readonly FieldNote[]): readonly FieldNote[] {
  const fields = new Set(first.map((note) => note.field));
  return [...first, ...second.filter((note) => !fields.has(note.field))];
}

function toNote(violation: Violation): FieldNote {
  const about = violation.forKey ? "its key " : "";
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
