import type { Json, JsonObject } from "../../runtime/json.ts";
import { arrayAt, isJsonObject, numberAt, objectAt, stringAt } from "../../runtime/json.ts";
import type { KubeObject } from "./kube-object.ts";
import { kubeTime } from "./kube-object.ts";

export type ConditionChange = {
  readonly status: "True" | "False";
  readonly reason?: string;
  readonly message?: string;
};

/** The status with conditions set by type; a transition time moves only where the status of a condition changes. */
export function withConditions(
  status: JsonObject,
  changes: Readonly<Record<string, ConditionChange>>,
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

/** The named condition of a status; undefined without it. */
export function conditionOf(status: JsonObject | undefined, type: string): JsonObject | undefined {
  const found = arrayAt(status, "conditions").find((condition) => stringAt(condition, "type") === type);
  return isJsonObject(found) ? found : undefined;
}

/** Where a container stands; times in milliseconds. */
export type ContainerFate =
  | { readonly kind: "waiting"; readonly reason: string; readonly message?: string }
  | { readonly kind: "running"; readonly startedMs: number }
  | {
      readonly kind: "terminated";
      readonly exitCode: number;
      readonly reason: string;
      readonly startedMs: number;
      readonly finishedMs: number;
    };

/** The status of one container as the kubelet reports it; what ended before becomes its last state. */
export function containerStatus(
  pod: KubeObject,
  container: Json,
  fate: ContainerFate,
  past: { readonly before: Json | undefined; readonly restarts: number },
): JsonObject {
  const state = containerState(pod, container, fate, past.restarts);
  const ended = objectAt(past.before, "state")["terminated"];
  const restarted = ended !== undefined && fate.kind !== "terminated";
  const image = stringAt(container, "image") ?? "";
  return {
    name: stringAt(container, "name"),
    state,
    lastState: restarted ? { terminated: ended } : objectAt(past.before, "lastState"),
    ready: fate.kind === "running",
    started: fate.kind === "running",
    restartCount: past.restarts,
    image,
    imageID: fate.kind === "waiting" ? "" : `sim://${image}`,
    ...(fate.kind === "waiting" ? {} : { containerID: containerId(pod, container, past.restarts) }),
  };
}

function containerState(pod: KubeObject, container: Json, fate: ContainerFate, restarts: number): JsonObject {
  switch (fate.kind) {
    case "waiting":
      return { waiting: { reason: fate.reason, ...(fate.message === undefined ? {} : { message: fate.message }) } };
    case "running":
      return { running: { startedAt: kubeTime(fate.startedMs) } };
    case "terminated":
      return {
        terminated: {
          exitCode: fate.exitCode,
          reason: fate.reason,
          startedAt: kubeTime(fate.startedMs),
          finishedAt: kubeTime(fate.finishedMs),
          containerID: containerId(pod, container, restarts),
        },
      };
  }
}

function containerId(pod: KubeObject, container: Json, restarts: number): string {
  return `sim://${pod.metadata.uid}/${stringAt(container, "name")}/${restarts}`;
}

/** The reported status of the container of that name in a list of statuses. */
export function statusOf(statuses: readonly Json[], container: Json): Json | undefined {
  const name = stringAt(container, "name");
  return statuses.find((status) => stringAt(status, "name") === name);
}

/** When a container's present or last run began; `otherwise` if it never did. */
export function startedMsOf(status: Json | undefined, otherwise: number): number {
  const state = objectAt(status, "state");
  const startedAt = stringAt(state["running"], "startedAt") ?? stringAt(state["terminated"], "startedAt");
  return startedAt === undefined ? otherwise : Date.parse(startedAt);
}

/** How often a container was restarted in place. */
export function restartsOf(status: Json | undefined): number {
  return numberAt(status, "restartCount") ?? 0;
}
