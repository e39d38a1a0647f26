import type { Json, JsonObject } from "../../../runtime/json.ts";
import { arrayAt, stringAt } from "../../../runtime/json.ts";
import type { KubeObject, PodRun } from "../objects/kube-object.ts";
import type { ContainerState, PodConditionChange } from "./pod-status.ts";
import { containerStatus, restartsOf, startedMsOf, statusOf } from "./pod-status.ts";

/** How long an init container runs. */
export const INIT_CONTAINER_MS = 50;

/** True for a sidecar: an init container that runs beside the regular containers. */
function isSidecar(container: Json): boolean {
  return stringAt(container, "restartPolicy") === "Always";
}

/** Returns the status with all regular containers in this state, and the init containers up to `run.initDone` done. */
export function withContainers(
  pod: KubeObject,
  run: PodRun,
  state: ContainerState,
  nowMs: number,
  over = false,
): JsonObject {
  const statuses = arrayAt(pod.status, "containerStatuses");
  const initStatuses = arrayAt(pod.status, "initContainerStatuses");
  const initContainers = arrayAt(pod.spec, "initContainers");
  const status: JsonObject = {
    ...pod.status,
    containerStatuses: arrayAt(pod.spec, "containers").map((container) =>
      containerStatus(pod, container, state, { before: statusOf(statuses, container), restarts: run.restarts }),
    ),
  };
  if (initContainers.length === 0) return status;
  const initContainerStatuses = initContainers.map((container, index) => {
    const before = statusOf(initStatuses, container);
    const init = initState({ container, index, before }, run, nowMs, over);
    const reported = containerStatus(pod, container, init, { before, restarts: restartsOf(before) });
    return { ...reported, ready: init.kind === "terminated" || (init.kind === "running" && isSidecar(container)) };
  });
  return { ...status, initContainerStatuses };
}

type InitContainer = { readonly container: Json; readonly index: number; readonly before: Json | undefined };

function initState(
  { container, index, before }: InitContainer,
  run: PodRun,
  nowMs: number,
  over: boolean,
): ContainerState {
  const startedMs = startedMsOf(before, nowMs);
  const sidecar = isSidecar(container);
  if (index > run.initDone && !over) return { kind: "waiting", reason: "PodInitializing" };
  if (sidecar ? !over : index === run.initDone && !over) return { kind: "running", startedMs };
  const finishedMs = sidecar ? nowMs : startedMs + INIT_CONTAINER_MS;
  return { kind: "terminated", exitCode: 0, reason: "Completed", startedMs, finishedMs };
}

function namesOf(containers: readonly Json[]): string {
  return containers.map((container) => stringAt(container, "name") ?? "").join(" ");
}

export function notInitialized(pod: KubeObject, done: number): PodConditionChange {
  const left = namesOf(arrayAt(pod.spec, "initContainers").slice(done));
  return {
    status: "False",
    reason: "ContainersNotInitialized",
    message: `containers with incomplete status: [${left}]`,
  };
}

export function notReady(
  pod: KubeObject,
  reason: string,
): Readonly<Record<"Ready" | "ContainersReady", PodConditionChange>> {
  const message = `containers with unready status: [${namesOf(arrayAt(pod.spec, "containers"))}]`;
  const change: PodConditionChange = { status: "False", reason, message };
  return { Ready: change, ContainersReady: change };
}
