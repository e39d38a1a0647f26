import type { FieldNote, SentJob } from "../core/job/request/sent.ts";
import type { Registry } from "../core/kinds/registry.ts";
import { toNote } from "./check-spec.ts";

/** Returns what a job's kind warns of. The job may run in spite of it. */
export function warnKind({ spec }: SentJob, kinds: Registry): readonly FieldNote[] {
  return (kinds.kindOf(spec.kind)?.warn?.(spec) ?? []).map((error) => toNote(error, spec));
}
