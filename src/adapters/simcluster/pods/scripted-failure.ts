import type { Json, JsonObject } from "../../../runtime/json.ts";
import { arrayAt, stringAt } from "../../../runtime/json.ts";
import type { KubeObject, PodRun } from "../objects/kube-object.ts";
import { notInitialized, notReady, withContainers } from "./pod-containers.ts";
import type { ContainerState } from "./pod-status.ts";
import { containerStatus, statusOf, withConditions } from "./pod-status.ts";

/** A failure that the annotation `sim.gangway.dev/fails` gives to a run of a pod. */
export type ScriptedFailure =
  /** The containers, or the init containers, never start. */
  | { readonly kind: "stuck"; readonly init: boolean; readonly reason: string; readonly message: string }
  /** The first init container fails. */
  | { readonly kind: "initEnds"; readonly exitCode: number; readonly reason: string }
  /** The node rejects the pod. */
  | { readonly kind: "refused"; readonly reason: string; readonly message: string }
  /** The run ends with OOMKilled. */
  | { readonly kind: "oom" }
  /** The node ends the pod, as a disruption, when its run would end. */
  | { readonly kind: "endedByNode"; readonly reason: string; readonly message: string };

const stuck = (reason: string, message: string, init = false): ScriptedFailure => ({
  kind: "stuck",
  init,
  reason,
  message,
});
const endedByNode = (reason: string, message: string): ScriptedFailure => ({ kind: "endedByNode", reason, message });
const PULL = "Back-off pulling image: not found";

/** Failures by the status that `kubectl get pods` shows. NodeShutdown is shown as Terminated. */
export const SCRIPTED_FAILURES: Readonly<Record<string, ScriptedFailure>> = {
  ImagePullBackOff: stuck("ImagePullBackOff", PULL),
  InvalidImageName: stuck("InvalidImageName", "couldn't parse image name"),
  CreateContainerConfigError: stuck("CreateContainerConfigError", "configmap not found"),
  CreateContainerError: stuck("CreateContainerError", "context deadline exceeded"),
  RunContainerError: stuck("RunContainerError", "failed to start containerd task"),
  "Init:ImagePullBackOff": stuck("ImagePullBackOff", PULL, true),
  "Init:CrashLoopBackOff": stuck("CrashLoopBackOff", "back-off 10s restarting failed container", true),
  "Init:Error": { kind: "initEnds", exitCode: 1, reason: "Error" },
  "Init:OOMKilled": { kind: "initEnds", exitCode: 137, reason: "OOMKilled" },
  OutOfcpu: { kind: "refused", reason: "OutOfcpu", message: "Pod was rejected: Node didn't have enough resource: cpu" },
  OOMKilled: { kind: "oom" },
  Evicted: endedByNode("Evicted", "The node was low on resource: memory."),
  NodeShutdown: endedByNode("Terminated", "Pod was terminated in response to imminent node shutdown."),
  Preempting: endedByNode("Preempting", "Preempted in order to admit critical pod"),
};

/** Returns the status of a pod whose containers never start. */
export function stuckStatus(
  pod: KubeObject,
  run: PodRun,
  { reason, message }: StuckFailure,
  nowMs: number,
): JsonObject {
  const status = withContainers(pod, run, { kind: "waiting", reason, message }, nowMs);
  return withConditions({ ...status, phase: "Pending" }, notReady(pod, "ContainersNotReady"), nowMs);
}

export type EndedByNodeFailure = Extract<ScriptedFailure, { kind: "endedByNode" }>;
type StuckFailure = Extract<ScriptedFailure, { kind: "stuck" }>;
type InitFailure = StuckFailure | Extract<ScriptedFailure, { kind: "initEnds" }>;

/** True for a failure of init containers, if the pod has some. */
export function isInitFailure(failure: ScriptedFailure | null, pod: KubeObject): failure is InitFailure {
  const isInit = failure?.kind === "initEnds" || (failure?.kind === "stuck" && failure.init);
  return isInit && arrayAt(pod.spec, "initContainers").length > 0;
}

/** Returns the status of a pod whose first init container fails. The kubelet restarts it, except under policy Never. */
export function initFailedStatus(pod: KubeObject, run: PodRun, failure: InitFailure, nowMs: number): JsonObject {
  const isOver = failure.kind === "initEnds" && stringAt(pod.spec, "restartPolicy") === "Never";
  const status = withContainers(pod, run, { kind: "waiting", reason: "PodInitializing" }, nowMs);
  const [first, ...others] = arrayAt(pod.spec, "initContainers");
  const reported = arrayAt(status, "initContainerStatuses");
  const initContainerStatuses = [
    initStatus(pod, first ?? {}, failure, { nowMs, isOver, before: statusOf(reported, first ?? {}) }),
    ...others.flatMap((one) => statusOf(reported, one) ?? []),
  ];
  const conditions = {
    Initialized: notInitialized(pod, 0),
    ...notReady(pod, isOver ? "PodFailed" : "ContainersNotReady"),
  };
  return withConditions({ ...status, initContainerStatuses, phase: isOver ? "Failed" : "Pending" }, conditions, nowMs);
}

function initStatus(
  pod: KubeObject,
  container: Json,
  failure: InitFailure,
  { nowMs, isOver, before }: { readonly nowMs: number; readonly isOver: boolean; readonly before: Json | undefined },
): JsonObject {
  const { reason } = failure;
  if (failure.kind === "stuck" && reason !== "CrashLoopBackOff") {
    return containerStatus(pod, container, { ...failure, kind: "waiting" }, { before, restarts: 0 });
  }
  const { exitCode, reason: endReason } = failure.kind === "initEnds" ? failure : { exitCode: 1, reason: "Error" };
  const end: ContainerState = { kind: "terminated", exitCode, reason: endReason, startedMs: nowMs, finishedMs: nowMs };
  const ended = containerStatus(pod, container, end, { before, restarts: 0 });
  if (isOver) return ended;
  const message = "back-off 10s restarting failed container";
  return containerStatus(
    pod,
    container,
    { kind: "waiting", reason: "CrashLoopBackOff", message },
    { before: ended, restarts: 1 },
  );
}

/** Returns the status of a pod that its node has ended. */
export function endedByNodeStatus(
  status: JsonObject | undefined,
  { reason, message }: EndedByNodeFailure,
  nowMs: number,
): JsonObject {
  const disrupted = { status: "True", reason: "TerminationByKubelet", message } as const;
  return withConditions({ ...status, phase: "Failed", reason, message }, { DisruptionTarget: disrupted }, nowMs);
}
