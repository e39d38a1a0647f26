import { append, maxOf } from "../../runtime/lists.ts";
import { type Job, liveAdmission } from "../job/job.ts";
import { withoutNomination } from "../job/nomination.ts";
import type { Admission, Failure, JobStatus } from "../job/status.ts";
import type { TaskInfo } from "../job/task-info.ts";
import { isService } from "../kinds/kind.ts";
import { type Arrangement, arrangeGang } from "./arrange-gang.ts";
import { changeAdmission, changeCondition, type Draft, type Inputs, reasonOf } from "./decision-draft.ts";

/** How a job ends. */
export type End =
  | { readonly phase: "SUCCEEDED"; readonly message: string }
  | { readonly phase: "FAILED"; readonly failure: Failure; readonly message: string }
  | { readonly phase: "CANCELLED"; readonly message: string };

const CONDITION = { SUCCEEDED: "Succeeded", FAILED: "Failed", CANCELLED: "Cancelled" } as const;

/**
 * Ends the job: sets the terminal phase, the condition and the completion time, and its live admission becomes `ended`.
 * Clean-up deals with its pods.
 */
export function finishJob(draft: Draft, inputs: Inputs, end: End): void {
  const { job, nowMs } = inputs;
  const type = CONDITION[end.phase];
  const reason = reasonOf(job, type);
  changeCondition(draft, { type, status: "True", reason, message: end.message }, nowMs);
  draft.status = {
    ...withoutNomination(draft.status),
    phase: end.phase,
    completionTimeMs: nowMs,
    waiting: null,
    backoff: null,
    failure: end.phase === "FAILED" ? end.failure : null,
    attempts: { ...draft.status.attempts, notBeforeMs: {}, restartsSeen: {} },
    ...abortedInfo(draft, inputs, end),
  };
  draft.events.push({ type: end.phase === "FAILED" ? "Warning" : "Normal", reason, message: end.message });
  const live = liveAdmission(draft);
  if (live !== null)
    changeAdmission(draft, stopAdmission(live, { state: "ended", arranged: arrangeGang(inputs, live), nowMs }));
  draft.stopped = true;
  draft.recheckAtMs.push(nowMs);
}

/** A cancelled job at a service is ABORTED, in the words of its plugin, which reports nothing more. */
function abortedInfo(draft: Draft, { kind, nowMs }: Inputs, end: End): Pick<JobStatus, "info"> {
  if (end.phase !== "CANCELLED" || !isService(kind)) return {};
  const { info = NO_INFO } = draft.status;
  const times = { occurredAtMs: nowMs, reportedAtMs: nowMs };
  return { info: { ...info, phase: "ABORTED", version: 0, reason: end.message, ...times } };
}

/** The info of a job whose plugin has reported nothing. */
const NO_INFO: TaskInfo = {
  logs: [],
  externalResources: [],
  occurredAtMs: null,
  reportedAtMs: null,
  additionalReasons: [],
  customInfo: null,
};

/** A time at which a job ends, whatever its pods do. */
type TimeLimit = { readonly atMs: number; readonly code: string; readonly words: string };

/** Ends a job that was active or admitted for longer than its limits of time allow. Returns true if it did. */
export function endByDeadline(draft: Draft, inputs: Inputs): boolean {
  const { job, nowMs } = inputs;
  const limits = timeLimits(draft, job);
  const over = limits.find(({ atMs }) => nowMs >= atMs);
  if (over === undefined) {
    append(
      draft.recheckAtMs,
      limits.map(({ atMs }) => atMs),
    );
    return false;
  }
  const message = `${job.spec.kind} ${job.name} has failed because it ${over.words}.`;
  const failure = limitFailure(over.code, message);
  finishJob(draft, inputs, { phase: "FAILED", failure, message });
  return true;
}

/**
 * The active deadline counts from the start of the pods, as with Kubeflow. The maximum run time counts from the
 * admission, so that the planner knows when the gang's room is free at the latest.
 */
function timeLimits(draft: Draft, { spec }: Pick<Job, "spec">): readonly TimeLimit[] {
  const { activeDeadlineSeconds: deadline, maxRuntimeMs } = spec.runPolicy;
  const { startTimeMs } = draft.status;
  const live = liveAdmission(draft);
  const limits: TimeLimit[] = [];
  if (deadline !== null && startTimeMs !== null) {
    const words = `was active longer than its deadline of ${deadline} s`;
    limits.push({ atMs: startTimeMs + deadline * 1000, code: "DeadlineExceeded", words });
  }
  if (maxRuntimeMs !== undefined && live !== null) {
    const words = `was admitted for longer than its maximum run time of ${maxRuntimeMs / 1000} s`;
    limits.push({ atMs: live.admitTimeMs + maxRuntimeMs, code: MAX_RUNTIME_EXCEEDED, words });
  }
  return limits;
}

/** The failure of a job that was admitted for its whole maximum run time. */
export const MAX_RUNTIME_EXCEEDED = "MaxRuntimeExceeded";

/**
 * The admission as it is stopped: without the ends of its members, and with the time until which pods were requested
 * (`Admission.belowMinSinceMs`).
 */
export function stopAdmission(
  admission: Admission,
  {
    state,
    arranged,
    nowMs,
  }: { readonly state: "ended" | "undone"; readonly arranged: Arrangement; readonly nowMs: number },
): Admission {
  const { ended: _over, lastEndMs: _past, ...stopped } = admission;
  return { ...stopped, state, belowMinSinceMs: requestedUntilMs(arranged, nowMs) };
}

/**
 * The time until which pods were requested. A create whose answer was lost may still be under way although its pod is
 * seen already, and must not create another pod after that one is gone. A pod that is seen was requested no later than
 * its creation time, by its cluster's clock, which may be ahead of ours.
 */
function requestedUntilMs({ slots }: Arrangement, nowMs: number): number {
  const requestTimesMs = slots.map(({ pod }) => (pod === null || pod.deleting ? nowMs : pod.createTimeMs));
  return Math.min(nowMs, maxOf(requestTimesMs, 0));
}

/** The failure of a job that reached a limit of its run policy. */
export function limitFailure(code: string, message: string): Failure {
  return { ...failureWithoutPod(code, message), limit: true };
}

/** A failure that names no pod. */
export function failureWithoutPod(code: string, message: string): Failure {
  return { code, kind: "USER", message, container: null, exitCode: null };
}

/** The message of a cancelled or deleted job. */
export function cancelMessage(job: Job): string {
  if (job.cancel === null) return `${job.spec.kind} ${job.name} is deleted.`;
  return job.cancel.reason === ""
    ? `${job.spec.kind} ${job.name} is cancelled.`
    : `${job.spec.kind} ${job.name} is cancelled: ${job.cancel.reason}`;
}
