import { isInterruptible } from "../job/interruptible.ts";
import type { Admission, Attempts, Failure, ReplicaStatus } from "../job/status.ts";
import type { PodView } from "../pods/pod-view.ts";
import { type Arrangement, arrange, isDelayed, type Slot } from "./arrange.ts";
import {
  countFailures,
  exitCodeIn,
  hasSucceeded,
  isActive,
  newFailures,
  roleStates,
  type SlotFailure,
} from "./count.ts";
import type { JobEvent } from "./decision.ts";
import { changeAdmission, changeCondition, type Draft, type Inputs, OUTSTANDING_MS, reasonOf } from "./draft.ts";
import { finish, limitFailure } from "./finish.ts";
import { awaitGrace, type JudgedArrangement, judge } from "./judge.ts";
import { podPhases } from "./pod-phases.ts";
import { giveUpMembers } from "./resize.ts";
import { templateWarnings } from "./template-warnings.ts";
import { tend } from "./tend.ts";
import { undo } from "./undo.ts";

/** So many pods are named in a message. */
const NAMES_MAX = 5;

/**
 * Follows a live admission: starts it, judges its pods, counts their failures, ends or undoes it, and says what is created and deleted.
 * The deadline comes first, then what the replicas say, then the budgets, as with Kubeflow. Of a cluster that is not observed nothing but
 * the deadline is known.
 */
export function follow(draft: Draft, inputs: Inputs, admission: Admission): void {
  if (!inputs.observed.some(({ cluster }) => cluster === admission.cluster)) {
    if (!endByDeadline(draft, inputs)) draft.recheckAtMs.push(inputs.nowMs + OUTSTANDING_MS);
    return;
  }
  const seen = judge(arrange(inputs.job, admission, inputs.observed), inputs);
  awaitGrace(
    draft,
    seen.slots.map(({ reading }) => reading),
  );
  if (draft.status.startTimeMs === null && !isDelayed(seen)) start(draft, inputs, seen);
  const failures = newFailures(seen.slots, inputs);
  showPods(draft, { admission, arranged: seen, failures });
  draft.events.push(...exitEvents(failures, inputs));
  if (endByDeadline(draft, inputs) || endByVerdict(draft, inputs, { slots: seen.slots, failures })) return;
  if (endByRefusal(draft, inputs, { admission, slots: seen.slots })) return;
  if (endByBudget(draft, inputs, { slots: seen.slots, failures })) return;
  const arranged = judge(arrange({ ...inputs.job, status: draft.status }, admission, inputs.observed), inputs);
  showPods(draft, { admission, arranged, failures });
  showProgress(draft, inputs, { arranged, failures });
  const followed = noteMinimum(draft, inputs, { admission, arranged, failures });
  if (undo(draft, inputs, { admission: followed, arranged })) return;
  giveUpMembers(draft, inputs, { admission: followed, arranged });
  tend(draft, inputs, followed, arranged);
}

/** Ends the job if its replicas say so; true if they did. */
function endByVerdict(
  draft: Draft,
  inputs: Inputs,
  of: { readonly slots: readonly Slot[]; readonly failures: readonly SlotFailure[] },
): boolean {
  const { job, kind } = inputs;
  const verdict = kind.verdict(roleStates(of.slots, of.failures, inputs), job.spec.kindSpec);
  if (verdict === "succeeded") {
    finish(draft, inputs, { phase: "SUCCEEDED", message: `${job.spec.kind} ${job.name} successfully completed.` });
    return true;
  }
  // What would fail again for ever ends every job, even one whose kind forgives such failures.
  const ended = verdict === "failed" || of.failures.some(({ failure }) => failure.permanent);
  if (ended) failForGood(draft, inputs, of.failures);
  return ended;
}

/** Ends the job if its cluster will never make a pod of it, as long as that pod is still wanted. */
function endByRefusal(
  draft: Draft,
  inputs: Inputs,
  { admission, slots }: { readonly admission: Admission; readonly slots: readonly Slot[] },
): boolean {
  const { job, refused } = inputs;
  if (refused === null || refused.admission !== admission.number) return false;
  const wanted = slots.some(
    ({ name, attempt, pod }) => name === refused.name && attempt === refused.attempt && pod === null,
  );
  if (!wanted) return false;
  const { code } = refused;
  const message = `${job.spec.kind} ${job.name} has failed because ${admission.cluster} refuses pod ${refused.name}: ${refused.message}`;
  finish(draft, inputs, { phase: "FAILED", failure: limitFailure(code, message), message });
  return true;
}

/**
 * Notes since when the gang is below its minimum; once it has been up, earlier undone admissions count no more. A failure that nothing restarts
 * and that did not end the job is missed by nobody: where too few others are left, these are enough. It stands in for none that may still run.
 */
function noteMinimum(
  draft: Draft,
  { job, nowMs }: Inputs,
  of: { readonly admission: Admission; readonly arranged: Arrangement; readonly failures: readonly SlotFailure[] },
): Admission {
  const { admission, arranged } = of;
  const over = of.failures.filter(({ retried }) => !retried).length;
  const up = arranged.slots.filter(({ pod }) => isActive(pod) || hasSucceeded(pod)).length;
  const below = up < Math.min(job.spec.runPolicy.schedulingPolicy.minAvailable, arranged.slots.length - over);
  const noted = { ...admission, belowMinSinceMs: below ? (admission.belowMinSinceMs ?? nowMs) : null };
  if (!below) draft.status = { ...draft.status, backoff: null };
  changeAdmission(draft, noted);
  return noted;
}

function start(draft: Draft, { job, nowMs }: Inputs, { gang }: Arrangement): void {
  draft.status = { ...draft.status, phase: "STARTING", startTimeMs: nowMs, waiting: null };
  draft.events.push({
    type: "Normal",
    reason: reasonOf(job, "Starting"),
    message: `${job.spec.kind} ${job.name} is starting.`,
  });
  draft.events.push(...templateWarnings(job, gang.scheduler));
}

/** Tells how many pods are active or have ended, and how the first of them are. */
function showPods(
  draft: Draft,
  of: {
    readonly admission: Admission;
    readonly arranged: JudgedArrangement;
    readonly failures: readonly SlotFailure[];
  },
): void {
  const { admission, arranged, failures } = of;
  const forGood = new Set(failures.filter(({ retried }) => !retried).map(({ pod }) => pod.uid));
  const pods = podPhases(admission.number, arranged.slots, ({ pod }) => pod !== null && forGood.has(pod.uid));
  draft.status = { ...draft.status, replicaStatuses: replicaStatuses(arranged), pods };
}

/**
 * Counts Running, Succeeded and Failed pods of each replica type; a pod being deleted is neither active nor failed. Pods beyond the members
 * count until they are seen to go (Kubeflow).
 */
function replicaStatuses({ slots, strays }: Arrangement): Record<string, ReplicaStatus> {
  const statuses: Record<string, ReplicaStatus> = {};
  const count = (role: string, pod: PodView | null) => {
    const before = statuses[role] ?? { active: 0, succeeded: 0, failed: 0 };
    statuses[role] = {
      active: before.active + Number(isActive(pod)),
      succeeded: before.succeeded + Number(hasSucceeded(pod)),
      failed: before.failed + Number(pod?.phase === "Failed" && !pod.deleting),
    };
  };
  for (const { role, pod, stale } of slots) {
    for (const one of [pod, ...stale.filter(({ phase }) => phase === "Failed")]) count(role, one);
  }
  for (const pod of strays) {
    const places = slots.filter(({ role }) => role.toLowerCase() === pod.role);
    const role = places[0]?.role;
    if (role !== undefined && pod.index !== null && pod.index >= places.length) count(role, pod);
  }
  return statuses;
}

/** The exit codes of pods that have just failed. A failure that restarts its pod is judged once; of others the record's counts tell. */
function exitEvents(failures: readonly SlotFailure[], inputs: Inputs): readonly JobEvent[] {
  const { job } = inputs;
  const staying = (role: string) => failures.filter(({ slot, retried }) => slot.role === role && !retried).length;
  const isNew = ({ slot, retried }: SlotFailure) =>
    retried || staying(slot.role) > (job.status.replicaStatuses[slot.role]?.failed ?? 0);
  return failures.filter(isNew).flatMap(({ slot, pod }) => {
    const exitCode = exitCodeIn(slot, inputs);
    const message = `Pod: ${job.namespace}.${pod.name} exited with code ${exitCode}`;
    return exitCode === null ? [] : [{ type: "Normal", reason: "ExitedWithCode", message } as const];
  });
}

/** Ends a job that was active too long; true if it did. */
export function endByDeadline(draft: Draft, inputs: Inputs): boolean {
  const { job, nowMs } = inputs;
  const seconds = job.spec.runPolicy.activeDeadlineSeconds;
  if (seconds === null || draft.status.startTimeMs === null) return false;
  const atMs = draft.status.startTimeMs + seconds * 1000;
  if (nowMs < atMs) {
    draft.recheckAtMs.push(atMs);
    return false;
  }
  const message = `${job.spec.kind} ${job.name} has failed because it was active longer than its deadline of ${seconds} s.`;
  finish(draft, inputs, { phase: "FAILED", failure: limitFailure("DeadlineExceeded", message), message });
  return true;
}

function failForGood(draft: Draft, inputs: Inputs, failures: readonly SlotFailure[]): void {
  const { job } = inputs;
  const permanent = failures.filter(({ retried }) => !retried);
  const first = permanent.find(({ failure }) => failure.permanent) ?? permanent[0];
  const role = first?.slot.role ?? "";
  const own = permanent.filter(({ slot }) => slot.role === role);
  const message = `${job.spec.kind} ${job.name} has failed because ${failedText(role, own)}.`;
  finish(draft, inputs, { phase: "FAILED", failure: recordedFailure(first, message), message });
}

/** `2 Worker replica(s) failed: j-worker-0, j-worker-1`. */
function failedText(role: string, failures: readonly SlotFailure[]): string {
  const names = failures.slice(0, NAMES_MAX).map(({ pod }) => pod.name);
  const more = failures.length > names.length ? ` and ${failures.length - names.length} more` : "";
  return `${failures.length} ${role} replica(s) failed: ${names.join(", ")}${more}`;
}

function recordedFailure(first: SlotFailure | undefined, message: string): Failure {
  if (first === undefined) return limitFailure("PodFailed", message);
  const { code, kind, message: said, container, exitCode } = first.failure;
  return { code, kind, message: said, container, exitCode };
}

/** Counts what failed, and fails the job at the last failure that a budget allows. */
function endByBudget(
  draft: Draft,
  inputs: Inputs,
  of: { readonly slots: readonly Slot[]; readonly failures: readonly SlotFailure[] },
): boolean {
  const { job } = inputs;
  const { backoffLimit, systemBackoffLimit } = job.spec.runPolicy;
  const before = draft.status.attempts;
  const { attempts, last } = countFailures(of.slots, of.failures, inputs);
  draft.status = { ...draft.status, attempts };
  tellInterruptible(draft, inputs, before);
  const spent = attempts.user > before.user && backoffLimit !== null && attempts.user >= Math.max(backoffLimit, 1);
  const spentBySystem = attempts.system > before.system && attempts.system >= Math.max(systemBackoffLimit, 1);
  if (!spent && !spentBySystem) return false;
  const why = last === null ? "" : ` (last: ${last.message})`;
  const what = spent ? "backoff limit" : "system backoff limit";
  const message = `${job.spec.kind} ${job.name} has failed because it has reached the specified ${what}${why}.`;
  const failure: Failure = {
    code: spent ? "BackoffLimitExceeded" : "SystemBackoffLimitExceeded",
    kind: spent ? "USER" : "SYSTEM",
    message,
    container: last?.container ?? null,
    exitCode: last?.exitCode ?? null,
  };
  finish(draft, inputs, { phase: "FAILED", failure, message });
  return true;
}

/** Tells once that later attempts are not interruptible any more. */
function tellInterruptible(draft: Draft, { job }: Inputs, before: Attempts): void {
  const { runPolicy } = job.spec;
  if (!isInterruptible(runPolicy, before) || isInterruptible(runPolicy, draft.status.attempts)) return;
  const message = `The system has failed ${job.spec.kind} ${job.name} ${draft.status.attempts.system} time(s): it is not interruptible any more.`;
  draft.events.push({ type: "Normal", reason: reasonOf(job, "NotInterruptible"), message });
}

/**
 * Restarting from a counted failure until the failed pods are gone, else Running once a leader runs. PodsReady: every member runs ready or
 * has succeeded.
 */
function showProgress(
  draft: Draft,
  inputs: Inputs,
  of: { readonly arranged: Arrangement; readonly failures: readonly SlotFailure[] },
): void {
  const { slots } = of.arranged;
  const retried = of.failures.filter((failure) => failure.retried);
  const states = roleStates(slots, of.failures, inputs);
  const restarting = retried.length > 0 || slots.some(({ stale }) => stale.some((pod) => !pod.deleting));
  if (restarting) showRestarting(draft, inputs, retried);
  else if (inputs.kind.verdict(states, inputs.job.spec.kindSpec) === "running") showRunning(draft, inputs);
  showReadiness(draft, inputs, slots);
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

export function showRunning(draft: Draft, { job, nowMs }: Inputs): void {
  const reason = reasonOf(job, "Running");
  const message = `${job.spec.kind} ${job.name} is running.`;
  const changed = changeCondition(draft, { type: "Running", status: "True", reason, message }, nowMs);
  if (changed) draft.events.push({ type: "Normal", reason, message });
  draft.status = { ...draft.status, phase: "RUNNING" };
}

function showReadiness(draft: Draft, { nowMs }: Inputs, slots: readonly Slot[]): void {
  const ready = slots.every(({ pod }) => hasSucceeded(pod) || (isActive(pod) && pod?.ready === true));
  const foreign = slots.find((slot) => slot.foreign && slot.pod === null);
  if (ready) {
    changeCondition(
      draft,
      { type: "PodsReady", status: "True", reason: "PodsReady", message: "All pods are ready." },
      nowMs,
    );
  } else if (foreign !== undefined) {
    const message = `A pod ${foreign.name} that is not this job's holds the name.`;
    const change = { type: "PodsReady", status: "False", reason: "FailedCreatePod", message } as const;
    if (changeCondition(draft, change, nowMs))
      draft.events.push({ type: "Warning", reason: "FailedCreatePod", message });
  } else {
    const message = "Not all pods are ready or succeeded.";
    changeCondition(draft, { type: "PodsReady", status: "False", reason: "PodsNotReady", message }, nowMs);
  }
}
