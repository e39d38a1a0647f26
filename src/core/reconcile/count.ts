import { doublingMs } from "../../runtime/doubling.ts";
import { objectAt, stringAt } from "../../runtime/json.ts";
import { replicaKey } from "../job/roles.ts";
import type { RestartPolicy } from "../job/spec.ts";
import type { Attempts } from "../job/status.ts";
import type { Kind, RoleState } from "../kinds/kind.ts";
import { defaultContainerOf } from "../kinds/port.ts";
import { OUTPUTS_NOT_TAKEN } from "../pods/co-pilot-failure.ts";
import { OOM_KILLED, type PodFailure, podFailure } from "../pods/failure.ts";
import type { PodView } from "../pods/pod-view.ts";
import type { Slot } from "./arrange.ts";
import type { Inputs } from "./draft.ts";
import type { JudgedSlot } from "./judge.ts";

const BACKOFF = { firstMs: 10_000, longestMs: 360_000 };

/** A pod that failed and is the attempt that the record names. */
export type SlotFailure = {
  readonly slot: Slot;
  readonly pod: PodView;
  readonly failure: PodFailure;
  readonly retried: boolean;
};

/** The failures to judge now: of pods of the present attempt. */
export function newFailures(slots: readonly JudgedSlot[], inputs: Inputs): readonly SlotFailure[] {
  return slots.flatMap((slot) => {
    const { pod } = slot;
    const failure = failureIn(slot, inputs.kind);
    if (pod === null || failure === null) return [];
    const policy = inputs.job.spec.replicaSpecs[slot.role]?.restartPolicy ?? "Never";
    return [{ slot, pod, failure, retried: isRetried({ policy, failure, exitCode: exitCodeIn(slot, inputs) }) }];
  });
}

/**
 * How the pod in a place has failed; null if it has not. One that is being deleted has not, whatever its containers come to, unless the platform
 * says that it takes it away: evictions, preemptions and taints are told in no other way.
 */
function failureIn({ pod, reading }: JudgedSlot, { defaultContainer }: Kind): PodFailure | null {
  if (pod === null) return null;
  if (!pod.deleting) return reading?.kind === "failed" ? reading.failure : null;
  const isTaken = pod.disrupted && pod.phase !== "Succeeded";
  return isTaken ? podFailure(pod, pod.primaryContainer ?? defaultContainer) : null;
}

/**
 * Whether a failed pod is started again. What the platform took away always is, what would fail again never. ExitCode: 1–127 permanent, 128 and above retryable, as is a
 * pod that does not say its exit code (Kubeflow), and one that lacked memory or lost its outputs and ended as if it were well.
 */
function isRetried(of: {
  readonly policy: RestartPolicy;
  readonly failure: PodFailure;
  readonly exitCode: number | null;
}): boolean {
  if (of.failure.lost) return true;
  if (of.policy === "Never" || of.failure.permanent) return false;
  if (of.policy !== "ExitCode" || of.exitCode === null) return true;
  return of.exitCode >= 128 || (of.exitCode === 0 && [OOM_KILLED, OUTPUTS_NOT_TAKEN].includes(of.failure.code));
}

/**
 * The exit code that a replica is judged by: that of its pod's primary container, which is the default container of its template where no
 * annotation names another. Null while it is not reported; no other container speaks for it.
 */
export function exitCodeIn(
  { pod, role }: Pick<Slot, "pod" | "role">,
  { job, kind }: Pick<Inputs, "job" | "kind">,
): number | null {
  const podSpec = objectAt(job.spec.replicaSpecs[role]?.template, "spec");
  const primary = pod?.primaryContainer ?? stringAt(defaultContainerOf(podSpec, kind), "name");
  const container = pod?.containers.find(({ name }) => primary === undefined || name === primary);
  return container?.terminated?.exitCode ?? null;
}

/** How each replica type is doing. Failed pods that are restarted are no word against the job. */
export function roleStates(
  slots: readonly Slot[],
  failures: readonly SlotFailure[],
  inputs: Inputs,
): readonly RoleState[] {
  const roles = [...new Set(slots.map(({ role }) => role))];
  return roles.map((role) => {
    const own = slots.filter((slot) => slot.role === role);
    const first = own.find(({ index }) => index === 0);
    return {
      role,
      members: own.length,
      active: own.filter(({ pod }) => isActive(pod)).length,
      succeeded: own.filter(({ pod }) => hasSucceeded(pod)).length,
      failedForGood: failures.filter(({ slot, retried }) => slot.role === role && !retried).length,
      firstExitedZero: first !== undefined && hasSucceeded(first.pod) && exitCodeIn(first, inputs) === 0,
    };
  });
}

export function isActive(pod: PodView | null): boolean {
  return pod !== null && !pod.deleting && pod.phase === "Running";
}

/** A pod that succeeded stays a success while it is being deleted. */
export function hasSucceeded(pod: PodView | null): boolean {
  return pod !== null && pod.phase === "Succeeded";
}

/** What was counted, and what is restarted for it. */
export type Counted = {
  readonly attempts: Attempts;
  /** The last failure that was counted; null where none was. */
  readonly last: PodFailure | null;
};

/**
 * Counts each failure and each container restart once. A failure raises the attempt of its replica, or with scope GANG of every member, and
 * sets when the next may start; restarts are a high-water mark by pod uid, of running pods of every policy but Never (Kubeflow).
 */
export function countFailures(slots: readonly Slot[], failures: readonly SlotFailure[], inputs: Inputs): Counted {
  const { attempts } = inputs.job.status;
  const gang = inputs.job.spec.runPolicy.restartScope === "GANG";
  const retried = failures.filter((one) => one.retried);
  const counted = gang ? retried.slice(0, 1) : retried;
  const raised = gang && counted.length > 0 ? slots : counted.map(({ slot }) => slot);
  const restarts = newRestarts(slots, inputs);
  const ended = new Set(counted.map(({ pod }) => pod.uid));
  const waitMs = Math.max(...raised.map(({ attempt }) => backoffMs(attempt)));
  const next: Attempts = {
    user: attempts.user + counted.filter(({ failure }) => failure.kind === "USER").length + restarts.count,
    system: attempts.system + counted.filter(({ failure }) => failure.kind === "SYSTEM").length,
    byReplica: { ...attempts.byReplica, ...mapSlots(raised, (slot) => slot.attempt + 1) },
    notBeforeMs: {
      ...attempts.notBeforeMs,
      ...mapSlots(raised, (slot) => inputs.nowMs + (gang ? waitMs : backoffMs(slot.attempt))),
    },
    restartsSeen: Object.fromEntries(
      Object.entries({ ...attempts.restartsSeen, ...restarts.seen }).filter(([uid]) => !ended.has(uid)),
    ),
  };
  return { attempts: next, last: counted.at(-1)?.failure ?? restarts.failure };
}

/** 10 s after the first attempt, twice as much after each further one, at most 360 s. */
export function backoffMs(attempt: number): number {
  return doublingMs(BACKOFF, attempt - 1);
}

function mapSlots(slots: readonly Slot[], value: (slot: Slot) => number): Record<string, number> {
  return Object.fromEntries(slots.map((slot) => [replicaKey(slot.role, slot.index), value(slot)]));
}

function newRestarts(slots: readonly Slot[], { job }: Inputs) {
  const seen: Record<string, number> = {};
  let count = 0;
  let failure: PodFailure | null = null;
  for (const { pod, role } of slots) {
    const policy = job.spec.replicaSpecs[role]?.restartPolicy;
    if (pod === null || !isActive(pod) || policy === undefined || policy === "Never") continue;
    const restarts = pod.containers.reduce((sum, container) => sum + container.restarts, pod.initRestarts);
    const before = job.status.attempts.restartsSeen[pod.uid] ?? 0;
    if (restarts <= before) continue;
    seen[pod.uid] = restarts;
    count += restarts - before;
    failure = restartFailure(pod);
  }
  return { seen, count, failure };
}

function restartFailure(pod: PodView): PodFailure {
  const container = pod.containers.find(({ restarts }) => restarts > 0)?.name ?? null;
  const message = `containers of pod ${pod.name} were restarted`;
  return {
    code: "ContainerRestarted",
    kind: "USER",
    message,
    container,
    exitCode: null,
    lost: false,
    permanent: false,
    cleanup: false,
  };
}
