import type { Admission, Failure, ReplicaStatus } from "../job/status.ts";
import type { PodView } from "../pods/pod-view.ts";
import { type Arrangement, arrange, type Slot } from "./arrange.ts";
import { countFailures, hasSucceeded, isActive, newFailures, roleStates, type SlotFailure } from "./count.ts";
import { changeAdmission, changeCondition, type Draft, type Inputs, OUTSTANDING_MS, reasonOf } from "./draft.ts";
import { finish, limitFailure } from "./finish.ts";
import { tend } from "./tend.ts";
import { undo } from "./undo.ts";

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
  if (draft.status.startTimeMs === null) start(draft, inputs);
  const seen = arrange(inputs.job, admission, inputs.observed);
  draft.status = { ...draft.status, replicaStatuses: replicaStatuses(seen) };
  const failures = newFailures(seen.slots, inputs);
  if (endByDeadline(draft, inputs) || endByVerdict(draft, inputs, { slots: seen.slots, failures })) return;
  if (endByBudget(draft, inputs, { slots: seen.slots, failures })) return;
  const arranged = arrange({ ...inputs.job, status: draft.status }, admission, inputs.observed);
  draft.status = { ...draft.status, replicaStatuses: replicaStatuses(arranged) };
  showProgress(draft, inputs, { arranged, failures });
  const followed = noteMinimum(draft, inputs, { admission, arranged });
  if (undo(draft, inputs, { admission: followed, arranged })) return;
  tend(draft, inputs, followed, arranged);
}

/** Ends the job if its replicas say so; true if they did. */
function endByVerdict(
  draft: Draft,
  inputs: Inputs,
  of: { readonly slots: readonly Slot[]; readonly failures: readonly SlotFailure[] },
): boolean {
  const { job, kind } = inputs;
  const verdict = kind.verdict(roleStates(of.slots, of.failures, kind));
  if (verdict === "succeeded") {
    finish(draft, inputs, { phase: "SUCCEEDED", message: `${job.spec.kind} ${job.name} successfully completed.` });
  } else if (verdict === "failed") {
    failForGood(draft, inputs, of.failures);
  }
  return verdict === "succeeded" || verdict === "failed";
}

/** Notes since when the gang is below its minimum; once it has been up, earlier undone admissions count no more. */
function noteMinimum(
  draft: Draft,
  { job, nowMs }: Inputs,
  { admission, arranged }: { readonly admission: Admission; readonly arranged: Arrangement },
): Admission {
  const up = arranged.slots.filter(({ pod }) => isActive(pod) || hasSucceeded(pod)).length;
  const below = up < Math.min(job.spec.runPolicy.schedulingPolicy.minAvailable, arranged.slots.length);
  const noted = { ...admission, belowMinSinceMs: below ? (admission.belowMinSinceMs ?? nowMs) : null };
  if (!below) draft.status = { ...draft.status, backoff: null };
  changeAdmission(draft, noted);
  return noted;
}

function start(draft: Draft, { job, nowMs }: Inputs): void {
  draft.status = { ...draft.status, phase: "STARTING", startTimeMs: nowMs, waiting: null };
  draft.events.push({
    type: "Normal",
    reason: reasonOf(job, "Starting"),
    message: `${job.spec.kind} ${job.name} is starting.`,
  });
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

function endByDeadline(draft: Draft, inputs: Inputs): boolean {
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
  const first = permanent[0];
  const role = first?.slot.role ?? "";
  const count = permanent.filter(({ slot }) => slot.role === role).length;
  const message = `${job.spec.kind} ${job.name} has failed because ${count} ${role} replica(s) failed.`;
  finish(draft, inputs, { phase: "FAILED", failure: recordedFailure(first, message), message });
}

function recordedFailure(first: SlotFailure | undefined, message: string): Failure {
  if (first === undefined) return limitFailure("PodFailed", message);
  const { lost: _lost, ...failure } = first.failure;
  return failure;
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
  const restarting = of.failures.length > 0 || slots.some(({ stale }) => stale.some((pod) => !pod.deleting));
  if (restarting) showRestarting(draft, inputs, of.failures);
  else if (inputs.kind.verdict(roleStates(slots, of.failures, inputs.kind)) === "running") showRunning(draft, inputs);
  showReadiness(draft, inputs, slots);
}

function showRestarting(draft: Draft, { job, nowMs }: Inputs, failures: readonly SlotFailure[]): void {
  const roles = [...new Set(failures.map(({ slot }) => slot.role))].join(", ");
  const reason = reasonOf(job, "Restarting");
  const message = `${job.spec.kind} ${job.name} is restarting because ${roles || "some"} replica(s) failed.`;
  changeCondition(draft, { type: "Restarting", status: "True", reason, message }, nowMs);
  draft.status = { ...draft.status, phase: "RESTARTING" };
  for (const { failure } of failures) draft.events.push({ type: "Warning", reason, message: failure.message });
}

function showRunning(draft: Draft, { job, nowMs }: Inputs): void {
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
