import { RUNNING_CONDITIONS } from "../job/admission/undone.ts";
import { isConditionTrue } from "../job/conditions.ts";
import { liveAdmission } from "../job/job.ts";
import { withoutNomination } from "../job/nomination.ts";
import type { ReplicaStatus } from "../job/status.ts";
import { arrangeGang } from "./arrange-gang.ts";
import {
  changeAdmission,
  changeCondition,
  clearConditions,
  type Draft,
  type Inputs,
  reasonOf,
} from "./decision-draft.ts";
import { stopAdmission } from "./finish-job.ts";

/**
 * Takes the job out of its queue, or off its cluster. All objects of its live admission are deleted under every
 * clean-pod policy, and its tokens are released after its pods are gone. The attempts stay, and so does the start time
 * until the job is resumed (Kubeflow).
 */
export function suspend(draft: Draft, inputs: Inputs): void {
  const { job, nowMs } = inputs;
  if (draft.status.phase === "SUSPENDED") return;
  const reason = reasonOf(job, "Suspended");
  const message = `${job.spec.kind} ${job.name} is suspended.`;
  clearConditions(draft, { types: RUNNING_CONDITIONS, reason, message }, nowMs);
  changeCondition(draft, { type: "Suspended", status: "True", reason, message }, nowMs);
  draft.status = {
    ...withoutNomination(draft.status),
    phase: "SUSPENDED",
    waiting: null,
    backoff: null,
    replicaStatuses: withoutActive(draft.status.replicaStatuses),
    attempts: { ...draft.status.attempts, restartsSeen: {} },
  };
  draft.events.push({ type: "Normal", reason, message });
  const live = liveAdmission(draft);
  if (live === null) return;
  changeAdmission(draft, stopAdmission(live, { state: "undone", arranged: arrangeGang(inputs, live), nowMs }));
  draft.stopped = true;
  draft.recheckAtMs.push(nowMs);
}

/** Puts a suspended job back into its queue. Its deadline counts from the start of its next admission. */
export function resume(draft: Draft, { job, nowMs }: Inputs): void {
  const reason = reasonOf(job, "Resumed");
  const message = `${job.spec.kind} ${job.name} is resumed.`;
  if (isConditionTrue(draft.status.conditions, "Suspended")) {
    changeCondition(draft, { type: "Suspended", status: "False", reason, message }, nowMs);
  }
  draft.status = {
    ...draft.status,
    phase: "WAITING",
    startTimeMs: null,
    waiting: {
      reason: "NotEvaluated",
      message: "the planner has not evaluated the job since it was resumed",
      sinceMs: nowMs,
    },
  };
  draft.events.push({ type: "Normal", reason, message });
}

function withoutActive(statuses: Readonly<Record<string, ReplicaStatus>>): Record<string, ReplicaStatus> {
  return Object.fromEntries(Object.entries(statuses).map(([role, counts]) => [role, { ...counts, active: 0 }]));
}
