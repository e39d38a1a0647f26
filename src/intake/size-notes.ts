import type { Job } from "../core/job/job.ts";
import type { FieldNote } from "../core/job/request/sent.ts";
import { kindOfJob, OWN_ENTRY, type Registry } from "../core/kinds/registry.ts";
import { sizeErrors } from "../core/reconcile/objects/pod-sizes.ts";
import { thrownText } from "../runtime/thrown-text.ts";
import { toNote } from "./check-spec.ts";

/** Returns errors about the size of a job's pods. Builds nothing. */
export function sizeNotes(job: Job, kinds: Registry): readonly FieldNote[] {
  const kind = kindOfJob(kinds, job);
  if (kind.runs === "service") return [];
  const isOwn = kinds.entryOf(job.spec.kind) === OWN_ENTRY;
  try {
    return sizeErrors(job, kind, isOwn).map((error) => toNote(error, job.spec));
  } catch (error) {
    // The worker counts what a kind from outside throws, and measures each pod again.
    if (isOwn) throw new Error(`the pods of a job cannot be measured: ${thrownText(error)}`, { cause: error });
    return [];
  }
}
