/**
 * Counts failures and container restarts, each once. It serves users who rely on backoff limits, restart policies and
 * exit codes.
 */

import { doublingMs } from "../../runtime/doubling.ts";
import { objectAt, stringAt } from "../../runtime/json.ts";
import { maxOf } from "../../runtime/lists.ts";
import { replicaKey } from "../job/roles.ts";
import type { RestartPolicy } from "../job/spec.ts";
import type { Attempts } from "../job/status.ts";
import { defaultContainerOf } from "../kinds/containers.ts";
import type { Kind, RoleState } from "../kinds/kind.ts";
import { OUTPUTS_NOT_TAKEN } from "../pods/read/co-pilot-failure.ts";
import { OOM_KILLED, type PodFailure, podFailure } from "../pods/read/failure.ts";
import { containerRestarts, type PodView } from "../pods/read/pod-view.ts";
import type { Slot } from "./arrange-gang.ts";
import { countSystem } from "./count-system.ts";
import type { Inputs } from "./decision-draft.ts";
import type { JudgedSlot } from "./judge-pods.ts";
import { failedForGood, hasSucceeded, type SlotFailure } from "./member-ends.ts";
import { actionOf, countByRules, deletedFailure } from "./rules/kind-rules.ts";

const BACKOFF = { firstMs: 10_000, longestMs: 360_000 };
/** The longest backoff of a replica, or of an attempt of a job without pods. */
export const RESTART_BACKOFF_MS_MAX = BACKOFF.longestMs;

/** The failures of pods of the present attempt. */
export function newFailures(slots: readonly JudgedSlot[], inputs: Inputs): readonly SlotFailure[] {
  const { rules } = inputs.kind;
  return slots.flatMap((slot) => {
    const { pod } = slot;
    const failure = failureIn(slot, inputs.kind);
    if (pod === null || failure === null) return [];
    if (rules !== undefined) {
      // The end of a member was counted when it was recorded.
      if (slot.ended !== null) return [];
      const action = actionOf(rules, { slot, pod, failure }, inputs);
      return [{ slot, pod, failure, action, retried: action.kind === "retry" || action.kind === "restartGang" }];
    }
    const policy = inputs.job.spec.replicaSpecs[slot.role]?.restartPolicy ?? "Never";
    return [{ slot, pod, failure, retried: isRetried({ policy, failure, exitCode: exitCodeIn(slot, inputs) }) }];
  });
}

/**
 * How the pod in a slot has failed; null if it has not. A pod that is being deleted has not failed, however its
 * containers end, unless they had ended before, or the platform has marked it as disrupted: that mark is the only sign
 * of evictions, preemptions and taints. For a kind with rules it has failed, too, if it ran.
 */
function failureIn({ pod, reading }: JudgedSlot, { defaultContainer, rules }: Kind): PodFailure | null {
  if (pod === null) return null;
  if (!pod.deleting || pod.endedFirst) return reading?.kind === "failed" ? reading.failure : null;
  const isTaken = pod.disrupted && pod.phase !== "Succeeded";
  if (isTaken) return podFailure(pod, pod.primaryContainer ?? defaultContainer);
  return rules === undefined ? null : deletedFailure(pod);
}

/**
 * Whether a failed pod is restarted. A pod that the platform removed always is; a pod that would fail again never is.
 * Under ExitCode, codes 1 to 127 are permanent, and 128 and above are retried. A pod without an exit code is retried
 * too (Kubeflow), as is one with exit code 0 that ran out of memory or lost its outputs.
 */
export function isRetried(of: {
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
 * The exit code of a replica: that of its pod's primary container, which is the default container of its template
 * unless an annotation names another. Null while Kubernetes does not report it; no other container's code is used.
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

/** The state of each replica type. Failed pods that are restarted do not count as failures here. */
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
      succeeded: own.filter(hasSucceeded).length,
      failedForGood: failedForGood(own, failures).length,
      firstExitedZero: first !== undefined && exitedZero(first, inputs),
    };
  });
}

/** A member without a pod has succeeded by the record, which needs exit code 0. */
function exitedZero(slot: Slot, inputs: Inputs): boolean {
  return hasSucceeded(slot) && (slot.pod === null || exitCodeIn(slot, inputs) === 0);
}

export function isActive(pod: PodView | null): boolean {
  return pod !== null && !pod.deleting && pod.phase === "Running";
}

/** The attempts after new failures were counted. */
type CountedFailures = {
  readonly attempts: Attempts;
  /** The last failure that was counted. Null: none was. */
  readonly last: PodFailure | null;
};

/**
 * Counts each failure and each container restart once, and the disruptions of one incident together as one failure of
 * the system: a lost rack must not spend the budget of a large gang. A failure raises the attempt of its replica, or of
 * every member with scope GANG, and sets when the next attempt may start. Container restarts count for running pods
 * under every policy except Never (Kubeflow): the record keeps the highest number seen by pod uid.
 */
export function countFailures(
  slots: readonly Slot[],
  failures: readonly SlotFailure[],
  inputs: Inputs,
): CountedFailures {
  const { attempts } = inputs.job.status;
  const { rules } = inputs.kind;
  if (rules !== undefined) {
    return withLast(countByRules(rules, slots, { failures, inputs }), failures.at(-1)?.failure ?? null, inputs);
  }
  const gang = inputs.job.spec.runPolicy.restartScope === "GANG";
  const retried = failures.filter((one) => one.retried);
  const counted = gang ? retried.slice(0, 1) : retried;
  const raised = gang && counted.length > 0 ? slots : counted.map(({ slot }) => slot);
  const restarts = newRestarts(slots, inputs);
  const ended = new Set(counted.map(({ pod }) => pod.uid));
  const waitMs = maxOf(raised.map(({ attempt }) => backoffMs(attempt)));
  const next: Attempts = {
    ...attempts,
    ...countSystem(counted, inputs),
    user: attempts.user + counted.filter(({ failure }) => failure.kind === "USER").length + restarts.count,
    byReplica: { ...attempts.byReplica, ...mapSlots(raised, (slot) => slot.attempt + 1) },
    notBeforeMs: {
      ...attempts.notBeforeMs,
      ...mapSlots(raised, (slot) => inputs.nowMs + (gang ? waitMs : backoffMs(slot.attempt))),
    },
    restartsSeen: Object.fromEntries(
      Object.entries({ ...attempts.restartsSeen, ...restarts.seen }).filter(([uid]) => !ended.has(uid)),
    ),
  };
  return withLast(next, counted.at(-1)?.failure ?? restarts.failure, inputs);
}

function withLast(attempts: Attempts, last: PodFailure | null, { nowMs }: Pick<Inputs, "nowMs">): CountedFailures {
  if (last === null) return { attempts, last };
  const { code, kind, message, container, exitCode } = last;
  return { attempts: { ...attempts, last: { code, kind, message, container, exitCode, atMs: nowMs } }, last };
}

/** The wait after an attempt: 10 s after the first, doubling with each further one, at most 360 s. */
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
    const restarts = containerRestarts(pod);
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
