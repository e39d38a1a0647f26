import type { Json, JsonObject } from "../../runtime/json.ts";
import { arrayAt, stringAt } from "../../runtime/json.ts";
import type { KubeObject, PodRun } from "./kube-object.ts";
import { notInitialized, notReady, withContainers } from "./pod-containers.ts";
import type { ContainerFate } from "./pod-status.ts";
import { containerStatus, statusOf, withConditions } from "./pod-status.ts";

/** What becomes of an attempt of a pod that is told to fail. */
export type Failing =
  /** Its containers, or its init containers, never start. */
  | { readonly kind: "stuck"; readonly init: boolean; readonly reason: string; readonly message: string }
  /** An init container ends badly. */
  | { readonly kind: "initEnds"; readonly exitCode: number; readonly reason: string }
  /** Its node does not take it in. */
  | { readonly kind: "refused"; readonly reason: string; readonly message: string }
  /** Its run ends for lack of memory. */
  | { readonly kind: "oom" }
  /** Its node ends it, as a disruption, when its run would end. */
  | { readonly kind: "endedByNode"; readonly reason: string; readonly message: string };

const stuck = (reason: string, message: string, init = false): Failing => ({ kind: "stuck", init, reason, message });
const endedByNode = (reason: string, message: string): Failing => ({ kind: "endedByNode", reason, message });
const PULL = "Back-off pulling image: not found";

/** By the words that `kubectl get pods` shows, but for NodeShutdown, which shows as Terminated. */
export const FAILINGS: Readonly<Record<string, Failing>> = {
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

/** The status of a pod whose containers never start. */
export function stuckStatus(
  pod: KubeObject,
  run: PodRun,
  { reason, message }: StuckFailing,
  nowMs: number,
): JsonObject {
  const status = withContainers(pod, run, { kind: "waiting", reason, message }, nowMs);
  return withConditions({ ...status, phase: "Pending" }, notReady(pod, "ContainersNotReady"), nowMs);
}

export type EndedByNode = Extract<Failing, { kind: "endedByNode" }>;
type StuckFailing = Extract<Failing, { kind: "stuck" }>;
type InitFailing = StuckFailing | Extract<Failing, { kind: "initEnds" }>;

/** True for a failure of the init containers, of a pod that has some. */
export function isInitFailing(failing: Failing | null, pod: KubeObject): failing is InitFailing {
  const isInit = failing?.kind === "initEnds" || (failing?.kind === "stuck" && failing.init);
  return isInit && arrayAt(pod.spec, "initContainers").length > 0;
}

/** The status of a pod whose first init container fails: the kubelet starts it again under every policy but Never. */
export function initFailedStatus(pod: KubeObject, run: PodRun, failing: InitFailing, nowMs: number): JsonObject {
  const isOver = failing.kind === "initEnds" && stringAt(pod.spec, "restartPolicy") === "Never";
  const status = withContainers(pod, run, { kind: "waiting", reason: "PodInitializing" }, nowMs);
  const [first, ...others] = arrayAt(pod.spec, "initContainers");
  const reported = arrayAt(status, "initContainerStatuses");
  const initContainerStatuses = [
    initStatus(pod, first ?? {}, failing, { nowMs, isOver, before: statusOf(reported, first ?? {}) }),
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
  failing: InitFailing,
  { nowMs, isOver, before }: { readonly nowMs: number; readonly isOver: boolean; readonly before: Json | undefined },
): JsonObject {
  const { reason } = failing;
  if (failing.kind === "stuck" && reason !== "CrashLoopBackOff") {
    return containerStatus(pod, container, { ...failing, kind: "waiting" }, { before, restarts: 0 });
  }
  const { exitCode, reason: why } = failing.kind === "initEnds" ? failing : { exitCode: 1, reason: "Error" };
  const end: ContainerFate = { kind: "terminated", exitCode, reason: why, startedMs: nowMs, finishedMs: nowMs };
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

/** The status of a pod that has failed, as the node says that has ended it. */
export function endedByNodeStatus(
  status: JsonObject | undefined,
  { reason, message }: EndedByNode,
  nowMs: number,
): JsonObject {
  const disrupted = { status: "True", reason: "TerminationByKubelet", message } as const;
  return withConditions({ ...status, phase: "Failed", reason, message }, { DisruptionTarget: disrupted }, nowMs);
}
