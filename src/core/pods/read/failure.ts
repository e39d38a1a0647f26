/**
 * Finds out why a pod failed, and whether its program or the platform caused it. It serves users who must know why a
 * job failed, and whose retry budgets differ by cause.
 */

import { foreignText } from "../../../runtime/foreign-text.ts";
import type { Failure, FailureKind } from "../../job/status.ts";
import type { ContainerEnd, ContainerView, PodView } from "./pod-view.ts";

/** The failure of a pod. `lost`: the platform ended the pod, not its program. */
export type PodFailure = Failure & {
  readonly lost: boolean;
  /** True: a retry would fail in the same way, such as for an image name that cannot exist. */
  readonly permanent: boolean;
  /** True: the pod has not ended and never will. It must be deleted, whatever the clean-pod policy is. */
  readonly cleanup: boolean;
};

export const OOM_KILLED = "OOMKilled";
/** Flyte's code for a pod that its node or the platform ended. */
const INTERRUPTED = "Interrupted";
export const UNKNOWN_ERROR = "UnknownError";

/** Reasons of pods that ended because their node shut down. GKE's kubelet reports Terminated. */
const SHUTDOWN_REASONS: readonly string[] = ["NodeShutdown", "Shutdown", "Terminated"];

/**
 * Other reasons that the kubelet, the node controller and the scheduler report for pods that they end or cannot run.
 */
const LOST_REASONS: readonly string[] = [
  "Evicted",
  "NodeLost",
  "NodeAffinity",
  "Preempting",
  "TaintManagerEviction",
  "UnexpectedAdmissionError",
];

const SIGKILL_EXIT_CODE = 137;

/**
 * Reads the failure of a pod whose phase is Failed. The most reliable facts come first. SYSTEM: disruption, node
 * shutdown and loss, eviction, preemption, a node that refused the pod, and SIGKILL of the primary container if no
 * container ran out of memory. USER: everything else. Source: Flyte's `DemystifyFailure`, in which later containers
 * override earlier ones, and evictions are the user's.
 */
export function podFailure(pod: PodView, primary: string | null): PodFailure {
  const failure = failureOf(pod, failedContainer(pod, primary));
  if (pod.disrupted) return { ...failure("SYSTEM", "DisruptionTarget", "was disrupted"), lost: true };
  if (SHUTDOWN_REASONS.includes(pod.reason))
    return { ...failure("SYSTEM", INTERRUPTED, `ended because its node shut down (${pod.reason})`), lost: true };
  if (LOST_REASONS.includes(pod.reason) || /^OutOf[a-z]/.test(pod.reason))
    return { ...failure("SYSTEM", pod.reason, `was ended by its cluster (${pod.reason})`), lost: true };
  const all = [...pod.initContainers, ...pod.containers, ...pod.ephemeralContainers];
  const oom = all.find((container) => lacksMemory(lastEnd(container)));
  if (oom !== undefined) return outOfMemory(pod, oom);
  const killed = all.filter((container) => lastEnd(container)?.exitCode === SIGKILL_EXIT_CODE);
  const own = primaryOf(pod, primary);
  if (own !== undefined && killed.includes(own))
    return failure("SYSTEM", INTERRUPTED, `was killed in container ${own.name}`);
  if (killed[0] !== undefined) return failure("USER", INTERRUPTED, `was killed in container ${killed[0].name}`);
  const failed = failedContainer(pod, primary);
  const end = failed === undefined ? null : presentEnd(failed);
  const what = end === null ? "failed" : `ended with exit code ${end.exitCode} in container ${failed?.name}`;
  return failure("USER", pod.reason || UNKNOWN_ERROR, what);
}

/** A failure because one container ran out of memory, whatever phase the pod reports. */
export function outOfMemory(pod: PodView, container: ContainerView): PodFailure {
  return failureOf(pod, container)("USER", OOM_KILLED, `ran out of memory in container ${container.name}`);
}

/** The failure of a running pod whose primary container has ended for good. */
export function primaryFailure(pod: PodView, primary: ContainerView): PodFailure {
  const end = presentEnd(primary);
  const failure = failureOf(pod, primary);
  if (lacksMemory(end)) return outOfMemory(pod, primary);
  if (end?.exitCode === SIGKILL_EXIT_CODE)
    return failure("SYSTEM", INTERRUPTED, `was killed in container ${primary.name}`);
  const what = `ended with exit code ${end?.exitCode ?? 0} in container ${primary.name}`;
  return failure("USER", end?.reason || UNKNOWN_ERROR, what);
}

/**
 * Makes failures of a pod from the kind of failure, its code and its text. `container`: the container to name, if any.
 */
export function failureOf(pod: PodView, container?: ContainerView) {
  const end = container === undefined ? null : presentEnd(container);
  const detail = pod.message || end?.message || "";
  return (kind: FailureKind, code: string, what: string): PodFailure => ({
    code,
    kind,
    message: foreignText(`pod ${pod.name} ${what}${detail === "" ? "" : `: ${detail}`}`),
    container: container?.name ?? null,
    exitCode: end?.exitCode ?? null,
    lost: false,
    permanent: false,
    cleanup: false,
  });
}

/**
 * The container that decides how the pod ended: the one of that name, else the first. Undefined if the cluster reports
 * no containers.
 */
function primaryOf(pod: PodView, primary: string | null): ContainerView | undefined {
  return pod.containers.find(({ name }) => name === primary) ?? pod.containers[0];
}

export function lacksMemory(end: ContainerEnd | null): boolean {
  return end?.reason.includes(OOM_KILLED) === true;
}

/** Flyte's order: the end of the previous run explains more than the end of the present one. */
function lastEnd({ lastTerminated, terminated }: ContainerView): ContainerEnd | null {
  return lastTerminated ?? terminated;
}

function presentEnd({ lastTerminated, terminated }: ContainerView): ContainerEnd | null {
  return terminated ?? lastTerminated;
}

function failedContainer(pod: PodView, primary: string | null): ContainerView | undefined {
  const own = primaryOf(pod, primary);
  const ended = ({ terminated }: ContainerView) => terminated !== null && terminated.exitCode !== 0;
  return own !== undefined && ended(own) ? own : [...pod.initContainers, ...pod.containers].find(ended);
}
