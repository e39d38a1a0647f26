import { undone } from "../../job/admission/undone.ts";
import { clusterWords } from "../../job/cluster-text.ts";
import type { Admission, Eviction, JobStatus } from "../../job/status.ts";
import { type Arrangement, arrangeGang } from "../arrange-gang.ts";
import { changeAdmission, changeCondition, type Draft, type Inputs, reasonOf } from "../decision-draft.ts";
import { stopAdmission } from "../finish-job.ts";
import { afterPreemption } from "./admission-backoff.ts";

/** Why an admission is undone. */
type Undone = {
  readonly admission: Admission;
  /** Of the conditions, and of the event. */
  readonly reason: string;
  /** Why the job waits then. */
  readonly waitsFor: string;
  readonly message: string;
};

/**
 * Undoes a live admission: the job waits again and keeps its attempts. All objects of the admission are deleted, and
 * its tokens are released after its pods are gone. The deadline counts from the start of the next admission.
 */
export function waitAgain(
  draft: Draft,
  inputs: Inputs,
  of: Undone & { readonly arranged: Arrangement; readonly backoff: JobStatus["backoff"] },
): void {
  const { job, nowMs } = inputs;
  const { admission, reason, waitsFor, message, arranged, backoff } = of;
  draft.status = {
    ...undone(draft.status, { reason, message }, nowMs),
    phase: "WAITING",
    waiting: { reason: waitsFor, message, sinceMs: nowMs },
    backoff,
  };
  changeAdmission(draft, stopAdmission(admission, { state: "undone", arranged, nowMs }));
  draft.events.push({ type: "Warning", reason: reasonOf(job, reason), message });
  draft.stopped = true;
  draft.recheckAtMs.push(nowMs);
}

/** Undoes the live admission as the planner has requested. It costs the job no failure, and only a victim backs off. */
export function evict(draft: Draft, inputs: Inputs, admission: Admission): void {
  const { eviction } = inputs.job.status;
  if (eviction === undefined) return;
  const { reason, message: why } = eviction;
  const { cluster: name } = admission;
  const where = name === null ? "its service" : clusterWords({ ...admission, name });
  const message = `Admission ${admission.number} to ${where} is undone: ${why}.`;
  const { backoff } = draft.status;
  const of = { admission, reason, waitsFor: reason, message, arranged: arrangeGang(inputs, admission), backoff };
  waitAgain(draft, inputs, { ...of, ...notePreemption(draft, eviction, { message, nowMs: inputs.nowMs }) });
}

/** Undoes the live admission at once because its cluster is gone. It costs the job no failure and no backoff. */
export function abandon(draft: Draft, inputs: Inputs, { admission, gone }: { admission: Admission; gone: Gone }): void {
  const where = clusterWords({ ...admission, name: admission.cluster ?? "" });
  const message = `Admission ${admission.number} to ${where} is undone: ${GONE_WORDS[gone]}.`;
  const of = { admission, reason: gone, waitsFor: gone, message, backoff: draft.status.backoff };
  waitAgain(draft, inputs, { ...of, arranged: arrangeGang(inputs, admission) });
}

/** How the cluster of an admission is gone. */
export type Gone = "ClusterGivenUp" | "ClusterLost";

const GONE_WORDS: Readonly<Record<Gone, string>> = {
  ClusterGivenUp: "the cluster was given up",
  ClusterLost: "the cluster does not answer and counts as lost, and none of the pods was seen running",
};

/** Counts a preemption and shows it. Returns what a victim waits for; nothing if the gang is not preempted. */
function notePreemption(
  draft: Draft,
  { preemption, message: why }: Eviction,
  { message, nowMs }: { readonly message: string; readonly nowMs: number },
): { readonly waitsFor?: string; readonly backoff?: JobStatus["backoff"] } {
  if (preemption === undefined) return {};
  changeCondition(draft, { type: "Preempted", status: "True", reason: preemption, message }, nowMs);
  const { attempts, backoff } = draft.status;
  const { preemptions = 0 } = attempts;
  draft.status = { ...draft.status, attempts: { ...attempts, preemptions: preemptions + 1 } };
  return { waitsFor: "Backoff", backoff: afterPreemption(backoff, { preemptions, why, nowMs }) };
}

/** Forgets a request to undo an admission that is no longer live. */
export function forgetEviction(draft: Draft): void {
  const { eviction, ...status } = draft.status;
  if (eviction !== undefined) draft.status = status;
}
