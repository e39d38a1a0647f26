import type { Failure, FailureKind } from "../job/status.ts";
import type { ContainerView, PodView } from "./pod-view.ts";

/** What the failure of a pod says, and whether the platform took the pod away rather than its program ending. */
export type PodFailure = Failure & { readonly lost: boolean };

/** Reasons that the kubelet, the node controller and the scheduler give for pods that they end or cannot run. */
const LOST_REASONS: readonly string[] = [
  "Evicted",
  "NodeLost",
  "NodeShutdown",
  "NodeAffinity",
  "Preempting",
  "Shutdown",
  "TaintManagerEviction",
  "Terminated",
  "UnexpectedAdmissionError",
];

const SIGKILL_EXIT_CODE = 137;

/**
 * Reads the failure of a pod whose phase is Failed. SYSTEM: node loss and shutdown, eviction, preemption, disruption, a node that refused
 * the pod, SIGKILL of the default container without OOM. USER: everything else. `defaultContainer` null: the first container.
 */
export function podFailure(pod: PodView, defaultContainer: string | null): PodFailure {
  const primary = pod.containers.find(({ name }) => name === defaultContainer) ?? pod.containers[0];
  const failed = failedContainer(pod, primary);
  const exitCode = primary?.terminated?.exitCode ?? null;
  const found = { container: failed?.name ?? null, exitCode: failed?.terminated?.exitCode ?? null };
  const said = pod.message || failed?.terminated?.message || "";
  const failure = (kind: FailureKind, code: string, what: string): PodFailure => ({
    code,
    kind,
    message: `pod ${pod.name} ${what}${said === "" ? "" : `: ${said}`}`,
    ...found,
    lost: false,
  });
  if (pod.disrupted) return { ...failure("SYSTEM", "DisruptionTarget", "was disrupted"), lost: true };
  if (LOST_REASONS.includes(pod.reason) || /^OutOf[a-z]/.test(pod.reason)) {
    return { ...failure("SYSTEM", pod.reason, `was ended by its cluster (${pod.reason})`), lost: true };
  }
  const oom = pod.containers.find(({ terminated }) => terminated?.reason === "OOMKilled");
  if (oom !== undefined) return failure("USER", "OOMKilled", `ran out of memory in container ${oom.name}`);
  if (exitCode === SIGKILL_EXIT_CODE) return failure("SYSTEM", "SIGKILL", `was killed in container ${primary?.name}`);
  if (failed === undefined) return failure("USER", pod.reason || "PodFailed", "failed");
  return failure("USER", "ExitCode", `ended with exit code ${found.exitCode} in container ${failed.name}`);
}

/** The exit code of a pod's default container; null while it has none. */
export function exitCodeOf(pod: PodView, defaultContainer: string | null): number | null {
  const primary = pod.containers.find(({ name }) => name === defaultContainer) ?? pod.containers[0];
  return primary?.terminated?.exitCode ?? null;
}

function failedContainer(pod: PodView, primary: ContainerView | undefined): ContainerView | undefined {
  const ended = (container: ContainerView) => container.terminated !== null && container.terminated.exitCode !== 0;
  return primary !== undefined && ended(primary) ? primary : pod.containers.find(ended);
}
