import { DOWNLOADER } from "../co-pilot.ts";
import { failureOf, type PodFailure } from "./failure.ts";
import type { PodReading } from "./pod-reading.ts";
import type { ContainerView, PodConditionView, PodView } from "./pod-view.ts";

/** How long a pending pod may wait for each thing before it counts as failed, in milliseconds. */
export type PendingLimits = {
  readonly createContainerErrorGraceMs: number;
  readonly createContainerConfigErrorGraceMs: number;
  readonly imagePullBackoffGraceMs: number;
  /** How long a pod may be pending in all since its conditions last changed. 0: no limit. */
  readonly podPendingTimeoutMs: number;
};

/** The defaults, as in Flyte. */
export const PENDING_LIMITS: PendingLimits = {
  createContainerErrorGraceMs: 180_000,
  createContainerConfigErrorGraceMs: 0,
  imagePullBackoffGraceMs: 180_000,
  podPendingTimeoutMs: 0,
};

type PendingState = { readonly reading: PodReading; readonly sinceMs: number };
type PendingContext = { readonly nowMs: number; readonly limits: PendingLimits };

/**
 * Judges a pending pod by its first condition that explains why it is pending, and by the container that is not ready.
 * Init containers come first, because the others wait for them. `recheckAtMs`: when the result changes although the pod
 * does not. Source: Flyte's
 * `DemystifyPending`, which ignores init containers.
 */
export function readPending(pod: PodView, at: PendingContext): PodReading {
  const { reading, sinceMs } = pendingStateOf(pod, at);
  const { podPendingTimeoutMs: timeoutMs } = at.limits;
  if (timeoutMs === 0 || (reading.kind !== "queued" && reading.kind !== "initializing")) return reading;
  const timeoutAtMs = sinceMs + timeoutMs;
  if (at.nowMs < timeoutAtMs)
    return { ...reading, recheckAtMs: Math.min(reading.recheckAtMs ?? timeoutAtMs, timeoutAtMs) };
  const what = `was pending for more than ${timeoutMs / 1000} s${reading.reason === "" ? "" : ` (${reading.reason})`}`;
  return stuck(failureOf(pod)("USER", "PodPendingTimeout", what));
}

function pendingStateOf(pod: PodView, at: PendingContext): PendingState {
  let sinceMs = pod.createTimeMs || at.nowMs;
  for (const condition of pod.conditions) {
    sinceMs = condition.sinceMs ?? pod.createTimeMs;
    const reading = conditionReading(pod, condition, { ...at, sinceMs });
    if (reading !== null) return { reading, sinceMs };
  }
  return { reading: { kind: "queued", reason: "", recheckAtMs: null }, sinceMs };
}

/** Reads one condition. Null if it does not explain why the pod is pending. */
function conditionReading(
  pod: PodView,
  condition: PodConditionView,
  at: PendingContext & { readonly sinceMs: number },
): PodReading | null {
  const isFalse = condition.status === "False";
  if (condition.type === "Unschedulable" || (condition.type === "PodScheduled" && isFalse)) {
    const reason = [condition.reason, condition.message].filter((text) => text !== "").join(": ");
    return { kind: "queued", reason, recheckAtMs: null };
  }
  if (condition.type !== "Ready" || !isFalse) return null;
  const waiting = [...pod.initContainers, ...pod.containers].find((container) => !container.ready && container.waiting);
  return waiting === undefined ? null : waitingReading({ pod, condition, container: waiting, ...at });
}

type WaitingContainer = PendingContext & {
  readonly pod: PodView;
  readonly condition: PodConditionView;
  readonly container: ContainerView;
  readonly sinceMs: number;
};

/**
 * Reads a container that waits. An unknown reason counts as a failure of the system, because such a pod might never
 * end.
 */
function waitingReading(of: WaitingContainer): PodReading {
  const { container, limits } = of;
  switch (container.waiting?.reason) {
    case undefined:
    case "":
    case "ContainerCreating":
    case "PodInitializing":
    // Becomes ImagePullBackOff if it lasts.
    case "ErrImagePull":
      return initializing(of, null);
    case "CreateContainerError":
      return afterGrace(of, limits.createContainerErrorGraceMs, { permanent: true });
    case "CreateContainerConfigError":
      return afterGrace(of, limits.createContainerConfigErrorGraceMs, { permanent: true });
    case "ImagePullBackOff":
      return afterGrace(of, limits.imagePullBackoffGraceMs, { permanent: false });
    case "InvalidImageName":
      return stuck({ ...waitingFailure(of, "USER", null), permanent: true });
    case "CrashLoopBackOff":
      return stuck(waitingFailure(of, "USER", null));
    default:
      return stuck(waitingFailure(of, "SYSTEM", null));
  }
}

function afterGrace(of: WaitingContainer, graceMs: number, { permanent }: { readonly permanent: boolean }): PodReading {
  const atMs = of.sinceMs + graceMs;
  if (of.nowMs < atMs) return initializing(of, atMs);
  return stuck({ ...waitingFailure(of, "USER", graceMs), permanent });
}

function initializing({ container }: WaitingContainer, recheckAtMs: number | null): PodReading {
  const { reason = "", message = "" } = container.waiting ?? {};
  const why = [reason, message].filter((text) => text !== "").join(": ");
  return { kind: "initializing", reason: `container ${container.name}: ${why}`, recheckAtMs };
}

/** The code is Flyte's: the reasons of the condition and of the container. */
function waitingFailure(of: WaitingContainer, kind: "USER" | "SYSTEM", graceMs: number | null): PodFailure {
  const { pod, condition, container } = of;
  const { reason = "", message = "" } = container.waiting ?? {};
  const grace = graceMs === null || graceMs === 0 ? "" : ` for more than ${graceMs / 1000} s`;
  const detail = message === "" ? "" : `: ${message}`;
  const fetches = container.name === DOWNLOADER ? "could not download its inputs: " : "";
  const what = `${fetches}could not start container ${container.name}${grace} (${reason}${detail})`;
  return failureOf(pod, container)(kind, `${condition.reason}|${reason}`, what);
}

function stuck(failure: PodFailure): PodReading {
  return { kind: "failed", failure: { ...failure, cleanup: true } };
}
