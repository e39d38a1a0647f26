import type { Json, JsonObject } from "../../../runtime/json.ts";
import { arrayAt, isJsonObject, numberAt, objectAt, stringAt } from "../../../runtime/json.ts";
import type { KubeObject } from "../objects/kube-object.ts";
import { kubeTime } from "../objects/kube-object.ts";

/** The new values of a pod's condition. */
export type PodConditionChange = {
  readonly status: "True" | "False";
  readonly reason?: string;
  readonly message?: string;
};

/** Sets conditions by type. The transition time changes only if the condition's status changes. */
export function withConditions(
  status: JsonObject,
  changes: Readonly<Record<string, PodConditionChange>>,
  nowMs: number,
): JsonObject {
  const conditions: Json[] = [...arrayAt(status, "conditions")];
  for (const [type, change] of Object.entries(changes)) {
    const at = conditions.findIndex((condition) => stringAt(condition, "type") === type);
    const before = conditions[at];
    const kept = stringAt(before, "status") === change.status ? stringAt(before, "lastTransitionTime") : undefined;
    const next = { type, ...change, lastProbeTime: null, lastTransitionTime: kept ?? kubeTime(nowMs) };
    if (at < 0) conditions.push(next);
    else conditions[at] = next;
  }
  return { ...status, conditions };
}

/** Returns the condition of this type. Undefined: there is none. */
export function conditionOf(status: JsonObject | undefined, type: string): JsonObject | undefined {
  const found = arrayAt(status, "conditions").find((condition) => stringAt(condition, "type") === type);
  return isJsonObject(found) ? found : undefined;
}

/** The state of a container. */
export type ContainerState =
  | { readonly kind: "waiting"; readonly reason: string; readonly message?: string }
  | { readonly kind: "running"; readonly startedMs: number }
  | {
      readonly kind: "terminated";
      readonly exitCode: number;
      readonly reason: string;
      readonly startedMs: number;
      readonly finishedMs: number;
    };

/** Returns the status of one container, as a kubelet reports it. A restarted container's end is its last state. */
export function containerStatus(
  pod: KubeObject,
  container: Json,
  state: ContainerState,
  past: { readonly before: Json | undefined; readonly restarts: number },
): JsonObject {
  const ended = objectAt(past.before, "state")["terminated"];
  const restarted = ended !== undefined && state.kind !== "terminated";
  const image = stringAt(container, "image") ?? "";
  return {
    name: stringAt(container, "name"),
    state: stateMessage(pod, container, state, past.restarts),
    lastState: restarted ? { terminated: ended } : objectAt(past.before, "lastState"),
    ready: state.kind === "running",
    started: state.kind === "running",
    restartCount: past.restarts,
    image,
    imageID: state.kind === "waiting" ? "" : `sim://${image}`,
    ...(state.kind === "waiting" ? {} : { containerID: containerId(pod, container, past.restarts) }),
  };
}

function stateMessage(pod: KubeObject, container: Json, state: ContainerState, restarts: number): JsonObject {
  switch (state.kind) {
    case "waiting":
      return { waiting: { reason: state.reason, ...(state.message === undefined ? {} : { message: state.message }) } };
    case "running":
      return { running: { startedAt: kubeTime(state.startedMs) } };
    case "terminated":
      return {
        terminated: {
          exitCode: state.exitCode,
          reason: state.reason,
          startedAt: kubeTime(state.startedMs),
          finishedAt: kubeTime(state.finishedMs),
          containerID: containerId(pod, container, restarts),
        },
      };
  }
}

function containerId(pod: KubeObject, container: Json, restarts: number): string {
  return `sim://${pod.metadata.uid}/${stringAt(container, "name")}/${restarts}`;
}

/** Finds a container's status in a list of statuses, by its name. */
export function statusOf(statuses: readonly Json[], container: Json): Json | undefined {
  const name = stringAt(container, "name");
  return statuses.find((status) => stringAt(status, "name") === name);
}

/** Returns when a container's current or last run began; `otherwise` if it has not run. */
export function startedMsOf(status: Json | undefined, otherwise: number): number {
  const state = objectAt(status, "state");
  const startedAt = stringAt(state["running"], "startedAt") ?? stringAt(state["terminated"], "startedAt");
  return startedAt === undefined ? otherwise : Date.parse(startedAt);
}

/** Returns how often a container was restarted in place. */
export function restartsOf(status: Json | undefined): number {
  return numberAt(status, "restartCount") ?? 0;
}
