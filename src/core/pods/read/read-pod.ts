import { namedByCoPilot, uploadOf, withoutUploader } from "./co-pilot-failure.ts";
import {
  failureOf,
  lacksMemory,
  outOfMemory,
  type PodFailure,
  podFailure,
  primaryFailure,
  UNKNOWN_ERROR,
} from "./failure.ts";
import type { PodReading } from "./pod-reading.ts";
import type { PodPhase, PodView } from "./pod-view.ts";
import { type PendingLimits, readPending } from "./read-pending.ts";

type ReadingContext = {
  /** The default primary container, for a pod whose annotation names none. Null: unknown. */
  readonly defaultContainer: string | null;
  readonly limits: PendingLimits;
  readonly nowMs: number;
};

/** Reads the whole status of a pod. Every status has exactly one result. Never throws. */
export function readPod(pod: PodView, context: ReadingContext): PodReading {
  switch (pod.phase) {
    case "Pending":
      return readPending(pod, context);
    case "Running":
      return readRunning(pod, context.defaultContainer);
    case "Succeeded":
      return readSuccess(pod);
    case "Failed":
      return readFailure(pod, context.defaultContainer);
    case "Unknown":
      return { kind: "unknown" };
  }
}

/** The phase that Kubernetes would report if it judged as Gangway does. */
export function phaseOf(pod: PodView, reading: PodReading): PodPhase {
  if (reading.kind === "failed") return "Failed";
  return reading.kind === "succeeded" ? "Succeeded" : pod.phase;
}

/**
 * A pod that succeeded has failed if a container ran out of memory. Kubernetes has judged the other exit codes. Source:
 * `DemystifySuccess`.
 */
export function readSuccess(pod: PodView): PodReading {
  const { initContainers, containers, ephemeralContainers } = withoutUploader(pod);
  const all = [...initContainers, ...containers, ...ephemeralContainers];
  const oom = all.find(({ terminated }) => lacksMemory(terminated));
  return oom === undefined ? withOutputs(pod) : { kind: "failed", failure: outOfMemory(pod, oom) };
}

/** A success, if the outputs are uploaded. */
function withOutputs(pod: PodView): PodReading {
  const upload = uploadOf(pod);
  if (upload.kind === "failed") return upload;
  return { kind: upload.kind === "pending" ? "running" : "succeeded" };
}

function readFailure(pod: PodView, defaultContainer: string | null): PodReading {
  const failure = podFailure(withoutUploader(pod), pod.primaryContainer ?? defaultContainer);
  return { kind: "failed", failure: namedByExit(namedByCoPilot(pod, failure)) };
}

/**
 * Judges a pod by its primary container alone, while others may still run. A container without a state waits, as in
 * Kubernetes. Source: Flyte's `DeterminePrimaryContainerPhase`.
 */
export function readPrimary(pod: PodView, name: string): PodReading {
  const primary = pod.containers.find((container) => container.name === name);
  if (primary === undefined) {
    const failure = failureOf(pod)(
      "USER",
      "PrimaryContainerNotFound",
      `has no container ${name}, which should be its primary container`,
    );
    return { kind: "failed", failure: { ...failure, permanent: true } };
  }
  const { terminated } = primary;
  if (terminated === null) return { kind: "running" };
  if (terminated.exitCode === 0 && !lacksMemory(terminated)) return { kind: "succeeded" };
  return { kind: "failed", failure: primaryFailure(pod, primary) };
}

/** Judges a running pod by its primary container, unless the kubelet will restart that, or the pod is being deleted. */
function readRunning(pod: PodView, defaultContainer: string | null): PodReading {
  const known = pod.containers.some(({ name }) => name === defaultContainer);
  const primary = pod.primaryContainer ?? (known ? defaultContainer : null);
  if (primary === null || pod.deleting || pod.restartPolicy === "Always") return { kind: "running" };
  const reading = readPrimary(pod, primary);
  if (reading.kind === "succeeded") return withOutputs(pod);
  const isFinal = reading.kind !== "failed" || reading.failure.permanent || pod.restartPolicy === "Never";
  return isFinal ? reading : { kind: "running" };
}

/** Sets a code for a program that ended with its own exit code. Flyte has none. */
function namedByExit(failure: PodFailure): PodFailure {
  return failure.code === UNKNOWN_ERROR && failure.exitCode !== null ? { ...failure, code: "ExitCode" } : failure;
}
