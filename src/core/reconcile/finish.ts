import type { Job } from "../job/job.ts";
import type { Admission, Failure } from "../job/status.ts";
import { type Arrangement, arrange } from "./arrange.ts";
import { changeAdmission, changeCondition, type Draft, type Inputs, reasonOf } from "./draft.ts";

/** How a job ends. */
export type End =
  | { readonly phase: "SUCCEEDED"; readonly message: string }
  | { readonly phase: "FAILED"; readonly failure: Failure; readonly message: string }
  | { readonly phase: "CANCELLED"; readonly message: string };

const CONDITION = { SUCCEEDED: "Succeeded", FAILED: "Failed", CANCELLED: "Cancelled" } as const;

/** Ends the job: terminal phase and condition, completion time, and its live admission becomes `ended`. Its pods are clean-up's. */
export function finish(draft: Draft, inputs: Inputs, end: End): void {
  const { job, observed, nowMs } = inputs;
  const type = CONDITION[end.phase];
  const reason = reasonOf(job, type);
  changeCondition(draft, { type, status: "True", reason, message: end.message }, nowMs);
  draft.status = {
    ...draft.status,
    phase: end.phase,
    completionTimeMs: nowMs,
    waiting: null,
    backoff: null,
    failure: end.phase === "FAILED" ? end.failure : null,
    attempts: { ...draft.status.attempts, notBeforeMs: {}, restartsSeen: {} },
  };
  draft.events.push({ type: end.phase === "FAILED" ? "Warning" : "Normal", reason, message: end.message });
  const live = draft.admissions.find((admission) => admission.state === "live");
  if (live !== undefined)
    changeAdmission(draft, stop(live, { state: "ended", arranged: arrange(job, live, observed), nowMs }));
  draft.stopped = true;
  draft.recheckAtMs.push(nowMs);
}

/** An admission that is live no longer, with until when its pods were asked for (see `Admission.belowMinSinceMs`). */
export function stop(
  admission: Admission,
  {
    state,
    arranged,
    nowMs,
  }: { readonly state: "ended" | "undone"; readonly arranged: Arrangement; readonly nowMs: number },
): Admission {
  return { ...admission, state, belowMinSinceMs: askedUntilMs(arranged, nowMs) };
}

/**
 * Until when creates were asked for. One whose answer was lost may be under way still, although what it makes is seen already: it must not come
 * after that is gone. A pod that is seen was asked for when it was made at the latest, by its cluster's clock, which may be ahead of ours.
 */
function askedUntilMs({ slots }: Arrangement, nowMs: number): number {
  const asked = slots.map(({ pod }) => (pod === null || pod.deleting ? nowMs : pod.createTimeMs));
  return Math.min(nowMs, Math.max(0, ...asked));
}

/** A failure that no pod is named for. */
export function limitFailure(code: string, message: string): Failure {
  return { code, kind: "USER", message, container: null, exitCode: null };
}

/** How a cancelled or deleted job is spoken of. */
export function cancelMessage(job: Job): string {
  if (job.cancel === null) return `${job.spec.kind} ${job.name} is deleted.`;
  return job.cancel.reason === ""
    ? `${job.spec.kind} ${job.name} is cancelled.`
    : `${job.spec.kind} ${job.name} is cancelled: ${job.cancel.reason}`;
}
