import type { DescMessage, Message } from "@bufbuild/protobuf";
import { joinNotes, NoteList } from "../../core/job/request/notes.ts";
import type { FieldNote } from "../../core/job/request/sent.ts";
import { checkValues } from "./check-values.ts";
import { checkRules } from "./rules/message-rules.ts";

/**
 * Returns everything in a request that breaks a constraint of the proto files, or that cannot be stored. Paths consist
 * of the request's field names. Does not check the values within the field named `except`; its handler does.
 */
export function checkRequest(schema: DescMessage, message: Message, except?: string): readonly FieldNote[] {
  const broken = new NoteList<FieldNote>();
  checkRules(schema, message, broken);
  return mergeNotes(
    checkValues(schema, message, except),
    broken.list((rest) => ({ field: "", ...rest })),
  );
}

/** Returns the notes of `first`, then those of `second` whose fields `first` does not name. */
export function mergeNotes(first: readonly FieldNote[], second: readonly FieldNote[]): readonly FieldNote[] {
  const fields = new Set(first.map((note) => note.field));
  return joinNotes(
    first,
    second.filter((note) => note.more !== undefined || !fields.has(note.field)),
  );
}
