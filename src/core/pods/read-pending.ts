import { DOWNLOADER } from "./co-pilot.ts";
import { failureOf, type PodFailure } from "./failure.ts";
import type { PodReading } from "./pod-reading.ts";
import type { ContainerView, PodConditionView, PodView } from "./pod-view.ts";

/** How long a pending pod may be stuck before that is a failure, in milliseconds, by what it waits for. */
export type PendingLimits = {
  readonly createContainerErrorGraceMs: number;
  readonly createContainerConfigErrorGraceMs: number;
  readonly imagePullBackoffGraceMs: number;
  /** How long it may be pending at all since its conditions last changed; 0: for ever. */
  readonly podPendingTimeoutMs: number;
};

/** Flyte's defaults. */
export const PENDING_LIMITS: PendingLimits = {
  createContainerErrorGraceMs: 180_000,
  createContainerConfigErrorGraceMs: 0,
  imagePullBackoffGraceMs: 180_000,
  podPendingTimeoutMs: 0,
};

type Situation = { readonly reading: PodReading; readonly sinceMs: number };
type At = { readonly nowMs: number; readonly limits: PendingLimits };

/**
 * Judges a pending pod by its conditions, the first that says anything, and by the container that keeps it from being ready: init containers
 * first, since the others wait for them. `recheckAtMs` is when the answer changes although nothing is heard. Source: Flyte's
 * `DemystifyPending`, which does not look at init containers.
 */
export function readPending(pod: PodView, at: At): PodReading {
  const { reading, sinceMs } = situationOf(pod, at);
  const { podPendingTimeoutMs: timeoutMs } = at.limits;
  if (timeoutMs === 0 || (reading.kind !== "queued" && reading.kind !== "initializing")) return reading;
  const timeoutAtMs = sinceMs + timeoutMs;
  if (at.nowMs < timeoutAtMs)
    return { ...reading, recheckAtMs: Math.min(reading.recheckAtMs ?? timeoutAtMs, timeoutAtMs) };
  const what = `was pending for more than ${timeoutMs / 1000} s${reading.reason === "" ? "" : ` (${reading.reason})`}`;
  return stuck(failureOf(pod)("USER", "PodPendingTimeout", what));
}

function situationOf(pod: PodView, at: At): Situation {
  let sinceMs = pod.createTimeMs || at.nowMs;
  for (const condition of pod.conditions) {
    sinceMs = condition.sinceMs ?? pod.createTimeMs;
    const reading = conditionReading(pod, condition, { ...at, sinceMs });
    if (reading !== null) return { reading, sinceMs };
  }
  return { reading: { kind: "queued", reason: "", recheckAtMs: null }, sinceMs };
}

/** What one condition says; null where it says nothing. */
function conditionReading(
  pod: PodView,
  condition: PodConditionView,
  at: At & { readonly sinceMs: number },
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

type WaitingContainer = At & {
  readonly pod: PodView;
  readonly condition: PodConditionView;
  readonly container: ContainerView;
  readonly sinceMs: number;
};

/** What a container that waits says. A reason that is not known is the cluster's error: nobody would ever end such a pod. */
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

/** The code is Flyte's: the reason of the condition and that of the container. */
function waitingFailure(of: WaitingContainer, kind: "USER" | "SYSTEM", graceMs: number | null): PodFailure {
  const { pod, condition, container } = of;
  const { reason = "", message = "" } = container.waiting ?? {};
  const grace = graceMs === null || graceMs === 0 ? "" : ` for more than ${graceMs / 1000} s`;
  const said = message === "" ? "" : `: ${message}`;
  const fetches = container.name === DOWNLOADER ? "has not got its inputs: " : "";
  const what = `${fetches}could not start container ${container.name}${grace} (${reason}${said})`;
  return failureOf(pod, container)(kind, `${condition.reason}|${reason}`, what);
}

function stuck(failure: PodFailure): PodReading {
  return { kind: "failed", failure: { ...failure, cleanup: true } };
}
