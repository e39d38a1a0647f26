import type { Failure, FailureKind } from "../job/status.ts";
import type { ContainerEnd, ContainerView, PodView } from "./pod-view.ts";

/** What the failure of a pod says, and whether the platform took the pod away rather than its program ending. */
export type PodFailure = Failure & {
  readonly lost: boolean;
  /** Another try would fail the same way: an image name that cannot exist, a config map that is not there. */
  readonly permanent: boolean;
  /** The pod has not ended by itself and never will: it has to be deleted, whatever the clean-pod policy says. */
  readonly cleanup: boolean;
};

export const OOM_KILLED = "OOMKilled";
/** What Flyte calls a pod that its node or the platform has ended. */
const INTERRUPTED = "Interrupted";
export const UNKNOWN_ERROR = "UnknownError";

/** Reasons of pods that a node which shuts down has ended; GKE's kubelet says Terminated. */
const SHUTDOWN_REASONS: readonly string[] = ["NodeShutdown", "Shutdown", "Terminated"];

/** Other reasons that the kubelet, the node controller and the scheduler give for pods that they end or cannot run. */
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
 * Reads the failure of a pod whose phase is Failed, in the order in which what is known outweighs the rest. SYSTEM: disruption, node
 * shutdown and loss, eviction, preemption, a node that refused the pod, SIGKILL of the primary container where none lacked memory. USER:
 * everything else. Source: Flyte's `DemystifyFailure`, whose later containers outweigh earlier ones, and which counts evictions as the user's.
 */
export function podFailure(pod: PodView, primary: string | null): PodFailure {
  const failure = failureOf(pod, failedContainer(pod, primary));
  if (pod.disrupted) return { ...failure("SYSTEM", "DisruptionTarget", "was disrupted"), lost: true };
  if (SHUTDOWN_REASONS.includes(pod.reason))
    return { ...failure("SYSTEM", INTERRUPTED, `was ended by its node's shutdown (${pod.reason})`), lost: true };
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

/** A lack of memory in one container of a pod, whatever the pod itself reports. */
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

/** How failures of a pod are written, by whose fault, code and what it did; `container` is the one to name, if any. */
export function failureOf(pod: PodView, container?: ContainerView) {
  const end = container === undefined ? null : presentEnd(container);
  const said = pod.message || end?.message || "";
  return (kind: FailureKind, code: string, what: string): PodFailure => ({
    code,
    kind,
    message: `pod ${pod.name} ${what}${said === "" ? "" : `: ${said}`}`,
    container: container?.name ?? null,
    exitCode: end?.exitCode ?? null,
    lost: false,
    permanent: false,
    cleanup: false,
  });
}

/** The container whose end counts: the one of that name, else the first; undefined where the cluster tells of none. */
function primaryOf(pod: PodView, primary: string | null): ContainerView | undefined {
  return pod.containers.find(({ name }) => name === primary) ?? pod.containers[0];
}

export function lacksMemory(end: ContainerEnd | null): boolean {
  return end?.reason.includes(OOM_KILLED) === true;
}

/** Flyte's order: how the run before the present one ended tells more than the present one, which may just be a consequence. */
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
