/**
 * Writes into a job's status how its gang is doing: counts and phases of pods, and the conditions Running, Restarting
 * and PodsReady. It serves users who watch a job or read `gangway get` and `gangway events`.
 */

import type { JobEvent } from "../job/event.ts";
import { memberOf } from "../job/roles.ts";
import {
  type GangAdmission,
  isTerminal,
  type MemberEnd,
  type PodFacts,
  type PodPhases,
  type ReplicaStatus,
} from "../job/status.ts";
import { PODS_TOLD_MAX, type TaskPhase } from "../job/task-info.ts";
import type { KindRules } from "../kinds/kind-rules.ts";
import { podFacts } from "../pods/read/pod-facts.ts";
import { hasEndedItself, type PodView } from "../pods/read/pod-view.ts";
import type { Arrangement, Slot } from "./arrange-gang.ts";
import { exitCodeIn, isActive, roleStates } from "./count-failures.ts";
import { changeCondition, type Draft, type Inputs, reasonOf } from "./decision-draft.ts";
import { failedText } from "./end-gang.ts";
import type { JudgedArrangement, JudgedSlot } from "./judge-pods.ts";
import { hasSucceeded, type SlotFailure } from "./member-ends.ts";
import { endsOf, gangState } from "./rules/kind-rules.ts";

/** Writes how many pods are active or have ended, and the phases of the first pods. */
export function showPods(
  draft: Draft,
  inputs: Inputs,
  of: {
    readonly admission: { readonly number: number };
    readonly arranged: JudgedArrangement;
    readonly failures: readonly SlotFailure[];
  },
): void {
  const { admission, arranged, failures } = of;
  const forGood = new Set(failures.filter(({ retried }) => !retried).map(({ pod }) => pod.uid));
  const pods = podPhases(admission.number, arranged.slots, {
    nowMs: inputs.nowMs,
    forGood: ({ pod }) => pod !== null && forGood.has(pod.uid),
  });
  const counted = replicaStatuses(arranged);
  const { rules } = inputs.kind;
  const statuses = rules === undefined ? counted : withParts(counted, inputs, { rules, arranged, failures });
  draft.status = { ...draft.status, replicaStatuses: statuses, pods };
}

/** Of a kind with rules, parts of the work have succeeded or failed: a member may have done several. */
function withParts(
  counted: Record<string, ReplicaStatus>,
  { job }: Pick<Inputs, "job">,
  of: { readonly rules: KindRules; readonly arranged: Arrangement; readonly failures: readonly SlotFailure[] },
): Record<string, ReplicaStatus> {
  const { rules, arranged, failures } = of;
  const ends = [...endsOf(arranged.slots, { rules, job, failures })].map(([key, end]) => ({ ...memberOf(key), end }));
  return Object.fromEntries(
    Object.entries(counted).map(([role, status]) => {
      const own = ends.filter((one) => one.role === role);
      const succeeded = own.filter(({ end }) => end === "SUCCEEDED").length;
      return [role, { ...status, succeeded, failed: Math.max(status.failed, own.length - succeeded) }];
    }),
  );
}

type Telling = { readonly nowMs: number; readonly forGood: (slot: JudgedSlot) => boolean };

/**
 * The phases and facts of the pods of an admission's first members. Reports a phase only if it changes a count, and
 * facts only of pods with a phase or a problem, so that no record is written for pods that start as usual. `forGood` is
 * true for a failed pod that is not restarted.
 */
function podPhases(admission: number, slots: readonly JudgedSlot[], { nowMs, forGood }: Telling): PodPhases {
  const told = slots.slice(0, PODS_TOLD_MAX).map((slot) => {
    const phase = phaseOf(slot, forGood);
    return { key: slot.key, phase, facts: factsOf(slot, phase !== null, nowMs) };
  });
  const phases = told.flatMap(({ key, phase }) => (phase === null ? [] : [[key, phase] as const]));
  const facts = told.flatMap(({ key, facts }) => (facts === null ? [] : [[key, facts] as const]));
  return {
    admission,
    phases: Object.fromEntries(phases),
    ...(facts.length === 0 ? {} : { facts: Object.fromEntries(facts) }),
  };
}

/** Null: the pod has nothing to tell yet. */
function factsOf({ pod, reading }: JudgedSlot, hasPhase: boolean, nowMs: number): PodFacts | null {
  if (pod === null) return null;
  const { node, ready, restarts, reason } = podFacts(pod, reading, nowMs);
  if (!hasPhase && reason === "") return null;
  const facts: PodFacts = {
    ...(node === "" ? {} : { node }),
    ...(ready ? { ready } : {}),
    ...(restarts === 0 ? {} : { restarts }),
    ...(reason === "" ? {} : { reason }),
  };
  return Object.keys(facts).length === 0 ? null : facts;
}

function phaseOf(slot: JudgedSlot, forGood: (slot: JudgedSlot) => boolean): TaskPhase | null {
  const { pod } = slot;
  if (hasSucceeded(slot)) return "SUCCESS";
  if (slot.ended === "FAILED") return "PERMANENT_FAILURE";
  if (pod === null || pod.deleting) return null;
  if (pod.phase === "Running") return "RUNNING";
  if (pod.phase !== "Failed") return null;
  return forGood(slot) ? "PERMANENT_FAILURE" : "RETRYABLE_FAILURE";
}

/**
 * Counts Running, Succeeded and Failed pods of each replica type. A pod that is being deleted is neither active nor
 * failed. Pods beyond the members count until they are seen to go, as with Kubeflow.
 */
function replicaStatuses({ slots, strays }: Arrangement): Record<string, ReplicaStatus> {
  const statuses: Record<string, ReplicaStatus> = {};
  const count = (role: string, pod: PodView | null, ended: MemberEnd | null) => {
    const before = statuses[role] ?? { active: 0, succeeded: 0, failed: 0 };
    const failed = ended === "FAILED" || (pod?.phase === "Failed" && !pod.deleting);
    statuses[role] = {
      active: before.active + Number(isActive(pod)),
      succeeded: before.succeeded + Number(hasSucceeded({ pod, ended })),
      failed: before.failed + Number(failed),
    };
  };
  for (const { role, pod, ended, stale } of slots) {
    count(role, pod, ended);
    for (const one of stale.filter(({ phase }) => phase === "Failed")) count(role, one, null);
  }
  for (const pod of strays) {
    const places = slots.filter(({ role }) => role.toLowerCase() === pod.role);
    const role = places[0]?.role;
    if (role !== undefined && pod.index !== null && pod.index >= places.length) count(role, pod, null);
  }
  return statuses;
}

/**
 * Counts the pods of a job that has ended, once the pass that ended it is over. After a success, those that still ran
 * have succeeded. After a failure or cancellation none is active any more once the tokens are released, because then
 * all pods have ended. Source: Kubeflow's `ReconcileJobs`. An admission that was gone before stays as it is. Of a kind
 * with rules only those have succeeded whose part of the work has.
 */
export function countEnded(draft: Draft, { job, kind }: Pick<Inputs, "job" | "kind">): void {
  const { phase, replicaStatuses } = draft.status;
  if (draft.stopped || !isTerminal(draft.status) || job.admissions.every(({ goneMs }) => goneMs !== null)) return;
  const succeeds = phase === "SUCCEEDED";
  if (!succeeds && draft.admissions.some(({ tokensReleasedMs }) => tokensReleasedMs === null)) return;
  if (Object.values(replicaStatuses).every(({ active }) => active === 0)) return;
  const counted = Object.entries(replicaStatuses).map(([role, { active, succeeded, failed }]) => {
    if (!succeeds || active === 0 || kind.rules !== undefined) return [role, { active: 0, succeeded, failed }] as const;
    return [role, { active: 0, succeeded: succeeded + active, failed, activeAtEnd: active }] as const;
  });
  draft.status = { ...draft.status, replicaStatuses: Object.fromEntries(counted) };
}

/** Events with the exit codes of pods that have just ended, those with code 0 too. */
export function exitEvents(
  { slots, failures }: { readonly slots: readonly Slot[]; readonly failures: readonly SlotFailure[] },
  inputs: Inputs,
): readonly JobEvent[] {
  const exits = [...newlySucceeded(slots), ...newlyFailed(failures, inputs)];
  return exits.flatMap(({ slot, pod }) => {
    const exitCode = exitCodeIn(slot, inputs);
    const message = `Pod: ${inputs.job.namespace}.${pod.name} exited with code ${exitCode}`;
    return exitCode === null ? [] : [{ type: "Normal", reason: "ExitedWithCode", message } as const];
  });
}

type Exit = { readonly slot: Slot; readonly pod: PodView };

/** This pass records the end of each such member, or ends the job: the next one does not see it as new. */
function newlySucceeded(slots: readonly Slot[]): readonly Exit[] {
  return slots.flatMap((slot) => {
    const { pod, ended } = slot;
    return ended === null && pod?.phase === "Succeeded" && hasEndedItself(pod) ? [{ slot, pod }] : [];
  });
}

/**
 * A failure that restarts its pod is seen as new only once. For other failures the recorded phases and counts show
 * whether they are new.
 */
function newlyFailed(failures: readonly SlotFailure[], { job }: Inputs): readonly Exit[] {
  const staying = (role: string) => failures.filter(({ slot, retried }) => slot.role === role && !retried).length;
  const isRecorded = ({ key }: Slot) => job.status.pods?.phases[key] === "PERMANENT_FAILURE";
  const isNew = ({ slot, retried }: SlotFailure) =>
    retried || (!isRecorded(slot) && staying(slot.role) > (job.status.replicaStatuses[slot.role]?.failed ?? 0));
  return failures.filter(isNew);
}

type Progress = {
  readonly admission: GangAdmission;
  readonly arranged: Arrangement;
  readonly failures: readonly SlotFailure[];
};

/**
 * Shows Restarting from a counted failure until the failed pods are gone, otherwise Running once the kind says so.
 * PodsReady is True while every member is ready or has succeeded.
 */
export function showProgress(draft: Draft, inputs: Inputs, of: Progress): void {
  const { slots } = of.arranged;
  const retried = of.failures.filter((failure) => failure.retried);
  const isPast = (pod: PodView) => pod.deleting || (inputs.kind.rules !== undefined && pod.phase === "Succeeded");
  const restarting = retried.length > 0 || slots.some(({ stale }) => stale.some((pod) => !isPast(pod)));
  if (restarting) showRestarting(draft, inputs, retried);
  else if (isRunning(draft, inputs, of)) showRunning(draft, inputs);
  showReadiness(draft, inputs, slots);
}

/** True if the kind says that the job runs. */
function isRunning(
  { status: { attempts } }: Draft,
  inputs: Inputs,
  { admission, arranged, failures }: Progress,
): boolean {
  const { job, kind, nowMs } = inputs;
  const { rules } = kind;
  if (rules !== undefined) {
    const known = { rules, job, admission, nowMs, attempts, failures: [] };
    return rules.judge(gangState(arranged.slots, known))?.kind === "running";
  }
  return kind.verdict(roleStates(arranged.slots, failures, inputs), job.spec.kindSpec) === "running";
}

function showRestarting(draft: Draft, { job, nowMs }: Inputs, failures: readonly SlotFailure[]): void {
  const byRole = [...Map.groupBy(failures, ({ slot }) => slot.role)];
  const why = byRole.map(([role, own]) => failedText(role, own)).join("; ");
  const reason = reasonOf(job, "Restarting");
  const message = `${job.spec.kind} ${job.name} is restarting because ${why || "some replicas failed"}.`;
  changeCondition(draft, { type: "Restarting", status: "True", reason, message }, nowMs);
  draft.status = { ...draft.status, phase: "RESTARTING" };
  for (const { failure } of failures) draft.events.push({ type: "Warning", reason, message: failure.message });
}

/** Shows the job as RUNNING, with an event when its condition Running changes. */
export function showRunning(draft: Draft, { job, nowMs }: Inputs): void {
  const reason = reasonOf(job, "Running");
  const message = `${job.spec.kind} ${job.name} is running.`;
  const changed = changeCondition(draft, { type: "Running", status: "True", reason, message }, nowMs);
  if (changed) draft.events.push({ type: "Normal", reason, message });
  draft.status = { ...draft.status, phase: "RUNNING" };
}

function showReadiness(draft: Draft, { nowMs }: Inputs, slots: readonly Slot[]): void {
  const ready = slots.every((slot) => hasSucceeded(slot) || (isActive(slot.pod) && slot.pod?.ready === true));
  const foreign = slots.find((slot) => slot.foreign && slot.pod === null);
  if (ready) {
    changeCondition(
      draft,
      { type: "PodsReady", status: "True", reason: "PodsReady", message: "All pods are ready." },
      nowMs,
    );
  } else if (foreign !== undefined) {
    const message = `Cannot create pod ${foreign.name}: a pod that does not belong to this job has this name.`;
    const change = { type: "PodsReady", status: "False", reason: "FailedCreatePod", message } as const;
    if (changeCondition(draft, change, nowMs))
      draft.events.push({ type: "Warning", reason: "FailedCreatePod", message });
  } else {
    const message = "Not all pods are ready or succeeded.";
    changeCondition(draft, { type: "PodsReady", status: "False", reason: "PodsNotReady", message }, nowMs);
  }
}
