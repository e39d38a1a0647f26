import { totalReplicas } from "../job/spec.ts";
import type { GangAdmission } from "../job/status.ts";
import type { Arrangement } from "./arrange-gang.ts";
import { isActive } from "./count-failures.ts";
import { changeAdmission, type Draft, type Inputs } from "./decision-draft.ts";
import { hasSucceeded } from "./member-ends.ts";
import { membersNeeded, withoutPartial } from "./partial-gang.ts";
import { forgetStartProblem } from "./problems/start-problem.ts";

/**
 * Notes since when the gang has been below its minimum. Once it has reached the minimum, earlier undone admissions no
 * longer lengthen the backoff. `over`: members whose failure neither restarts them nor ends the job. They are not
 * required: if fewer than the minimum are left, all that are left must run.
 */
export function noteMinimum(
  draft: Draft,
  { job, nowMs }: Inputs,
  of: { readonly admission: GangAdmission; readonly arranged: Arrangement; readonly over: number },
): GangAdmission {
  const { admission, arranged, over } = of;
  const up = arranged.slots.filter((slot) => isActive(slot.pod) || hasSucceeded(slot)).length;
  const all = admission.partial === "KEEP" ? totalReplicas(job.spec) : arranged.slots.length;
  const below = up < Math.min(membersNeeded(job, admission), all - over);
  const belowMinSinceMs = below ? (admission.belowMinSinceMs ?? nowMs) : null;
  const noted = { ...(below ? admission : withoutPartial(job, admission)), belowMinSinceMs };
  if (!below) {
    draft.status = { ...draft.status, backoff: null };
    forgetStartProblem(draft);
  }
  changeAdmission(draft, noted);
  return noted;
}
