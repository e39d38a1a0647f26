import { doublingMs } from "../../runtime/doubling.ts";
import type { Admission } from "../job/status.ts";
import type { Arrangement } from "./arrange.ts";
import { changeAdmission, clearConditions, type Draft, type Inputs, reasonOf } from "./draft.ts";
import { stop } from "./finish.ts";

const BACKOFF = { firstMs: 30_000, longestMs: 600_000 };
const UNDONE_CONDITIONS = ["QuotaReserved", "Admitted", "PodsReady", "Running", "Restarting"] as const;

/**
 * Undoes an admission whose gang has been below its minimum for longer than the start timeout, so that it never holds GPUs in part: the job
 * waits again with backoff, attempts survive, everything of the admission is deleted. True if it did.
 */
export function undo(
  draft: Draft,
  inputs: Inputs,
  { admission, arranged }: { readonly admission: Admission; readonly arranged: Arrangement },
): boolean {
  const { job, nowMs } = inputs;
  const seconds = job.spec.runPolicy.schedulingPolicy.scheduleTimeoutSeconds;
  if (admission.belowMinSinceMs === null || seconds <= 0) return false;
  const atMs = admission.belowMinSinceMs + seconds * 1000;
  if (nowMs < atMs) {
    draft.recheckAtMs.push(atMs);
    return false;
  }
  const undone = draft.status.backoff?.undone ?? 0;
  const waitMs = doublingMs(BACKOFF, undone);
  const message =
    `Fewer than ${job.spec.runPolicy.schedulingPolicy.minAvailable} pods ran on ${admission.cluster} for ${seconds} s: ` +
    `admission ${admission.number} is undone.`;
  clearConditions(draft, { types: UNDONE_CONDITIONS, reason: "StartTimeout", message }, nowMs);
  draft.status = {
    ...draft.status,
    phase: "WAITING",
    startTimeMs: null,
    replicaStatuses: {},
    waiting: { reason: "Backoff", message, sinceMs: nowMs },
    backoff: { undone: undone + 1, notBeforeMs: nowMs + waitMs, lastCluster: admission.cluster },
    attempts: { ...draft.status.attempts, restartsSeen: {} },
  };
  changeAdmission(draft, stop(admission, { state: "undone", arranged, nowMs }));
  draft.events.push({ type: "Warning", reason: reasonOf(job, "StartTimeout"), message });
  draft.stopped = true;
  draft.recheckAtMs.push(nowMs);
  return true;
}
