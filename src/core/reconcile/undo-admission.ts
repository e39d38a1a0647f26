import { problemsText } from "../job/pod-problems.ts";
import type { GangAdmission } from "../job/status.ts";
import { afterStartTimeout } from "./admission-backoff.ts";
import type { Arrangement } from "./arrange-gang.ts";
import type { Draft, Inputs } from "./decision-draft.ts";
import { waitAgain } from "./wait-again.ts";

/**
 * Undoes an admission whose gang was below its minimum for longer than the start timeout, so that part of a gang does
 * not hold GPUs. The job waits again with backoff and keeps its attempts, and all objects of the admission are deleted.
 * Returns true if it did.
 */
export function undoAdmission(
  draft: Draft,
  inputs: Inputs,
  { admission, arranged }: { readonly admission: GangAdmission; readonly arranged: Arrangement },
): boolean {
  const { job, nowMs } = inputs;
  const seconds = job.spec.runPolicy.schedulingPolicy.scheduleTimeoutSeconds;
  if (admission.belowMinSinceMs === null || seconds <= 0) return false;
  const atMs = admission.belowMinSinceMs + seconds * 1000;
  if (nowMs < atMs) {
    draft.recheckAtMs.push(atMs);
    return false;
  }
  const { minAvailable } = job.spec.runPolicy.schedulingPolicy;
  const why = problemsText(draft.status.podProblems?.problems ?? []);
  const message =
    `Fewer than ${minAvailable} pods ran on ${admission.cluster} for ${seconds} s: ` +
    `admission ${admission.number} is undone${why === "" ? "" : `: ${why}`}.`;
  const backoff = afterStartTimeout(draft.status.backoff, { cluster: admission.cluster, why, nowMs });
  waitAgain(draft, inputs, { admission, reason: "StartTimeout", waitsFor: "Backoff", message, arranged, backoff });
  return true;
}
