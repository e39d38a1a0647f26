import { cutText } from "../../../runtime/cut-text.ts";
import { PROBLEM_CHARS_MAX, problemsText } from "../../job/pod-problems.ts";
import type { AdmissionBackoff, GangAdmission } from "../../job/status.ts";
import type { Arrangement } from "../arrange-gang.ts";
import type { Draft, Inputs } from "../decision-draft.ts";
import { finishJob, limitFailure } from "../finish-job.ts";
import { membersNeeded } from "../partial-gang.ts";
import { afterStartTimeout } from "./admission-backoff.ts";
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
  if (undoRefused(draft, inputs, { admission, arranged })) return true;
  const seconds = job.spec.runPolicy.schedulingPolicy.scheduleTimeoutSeconds;
  if (admission.belowMinSinceMs === null || seconds <= 0) return false;
  const atMs = admission.belowMinSinceMs + seconds * 1000;
  if (nowMs < atMs) {
    draft.recheckAtMs.push(atMs);
    return false;
  }
  const { startProblem, podProblems } = draft.status;
  const permanent = startProblem?.admission === admission.number ? startProblem : null;
  const why = problemsText(podProblems?.problems ?? []) || (permanent?.message ?? "");
  const message =
    `Fewer than ${membersNeeded(job, admission)} pods ran on ${admission.cluster} for ${seconds} s: ` +
    `admission ${admission.number} is undone${why === "" ? "" : `: ${why}`}.`;
  const reason = permanent?.reason ?? null;
  const { cluster, partial } = admission;
  const whole = partial === "KEEP";
  const backoff = afterStartTimeout(draft.status.backoff, { cluster, why, reason, whole, nowMs });
  if (endByStarts(draft, inputs, { backoff, why: permanent?.message ?? why })) return true;
  waitAgain(draft, inputs, { admission, reason: "StartTimeout", waitsFor: "Backoff", message, arranged, backoff });
  return true;
}

/** How long a cluster may refuse a gang's objects: others may be about to make what is missing. */
const REFUSED_MS = 60_000;

/**
 * Undoes an admission whose cluster refuses the gang's objects until somebody changes the cluster. The gang holds
 * nothing while it waits, and another cluster is tried first. Returns true if it did.
 */
function undoRefused(
  draft: Draft,
  inputs: Inputs,
  { admission, arranged }: { readonly admission: GangAdmission; readonly arranged: Arrangement },
): boolean {
  const { refused, nowMs } = inputs;
  if (refused?.remedy === undefined || refused.admission !== admission.number) return false;
  const known = draft.status.podProblems?.problems.find(({ reason }) => reason === refused.reason);
  if (known === undefined || admission.belowMinSinceMs === null) return false;
  const atMs = known.sinceMs + REFUSED_MS;
  if (nowMs < atMs) {
    draft.recheckAtMs.push(atMs);
    return false;
  }
  const { cluster, number } = admission;
  const why = `${cluster} refuses its pods: ${cutText(refused.message, PROBLEM_CHARS_MAX)}; ${refused.remedy}`;
  const message = `Admission ${number} is undone: ${why}.`;
  const backoff = afterStartTimeout(draft.status.backoff, { cluster, why, reason: null, whole: false, nowMs });
  waitAgain(draft, inputs, { admission, reason: "ClusterRefused", waitsFor: "Backoff", message, arranged, backoff });
  return true;
}

/** Ends the job if too many starts in a row have failed for the same permanent reason. Returns true if it did. */
function endByStarts(
  draft: Draft,
  inputs: Inputs,
  { backoff, why }: { readonly backoff: AdmissionBackoff; readonly why: string },
): boolean {
  const { job } = inputs;
  const { startBackoffLimit = Number.POSITIVE_INFINITY } = job.spec.runPolicy;
  const { failedStarts } = backoff;
  if (failedStarts === undefined || failedStarts.count < startBackoffLimit) return false;
  const { count, reason } = failedStarts;
  const times = count === 1 ? "once" : `${count} times in a row`;
  const what = `its pods could not start ${times} (${reason}): ${why}`;
  const message = `${job.spec.kind} ${job.name} has failed because ${what}.`;
  finishJob(draft, inputs, { phase: "FAILED", failure: limitFailure("StartFailed", message), message });
  return true;
}
