import type { Job } from "../core/job/job.ts";
import { NoteList } from "../core/job/request/notes.ts";
import type { FieldNote } from "../core/job/request/sent.ts";
import { notLookedAt } from "../core/pods/fit/fit-table.ts";
import { objectAt } from "../runtime/json.ts";
import { requestPath } from "./request-path.ts";

/** Names what clusters place or refuse pods by and the planner does not look at: it may place the job in vain. */
export function warnFit({ spec }: Job): readonly FieldNote[] {
  const notes = new NoteList<FieldNote>();
  for (const [role, { template, replicas }] of Object.entries(spec.replicaSpecs)) {
    if (replicas === 0) continue;
    const at = requestPath(["spec", "replicaSpecs", role, "template", "spec"]);
    for (const { path, what } of notLookedAt(objectAt(template, "spec"))) {
      notes.add(() => ({ field: `${at}.${path}`, message: `is not looked at before the job is admitted: ${what}` }));
    }
  }
  return notes.list((rest) => ({ field: "", ...rest }));
}
