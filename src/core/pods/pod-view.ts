import type { JsonObject } from "../../runtime/json.ts";
import { arrayAt, isJsonObject, numberAt, objectAt, stringAt, stringMapAt } from "../../runtime/json.ts";
import { LABEL } from "../job/labels.ts";

export type PodPhase = "Pending" | "Running" | "Succeeded" | "Failed" | "Unknown";

/** How a run of a container ended. */
export type ContainerEnd = { readonly exitCode: number; readonly reason: string; readonly message: string };

export type ContainerView = {
  readonly name: string;
  readonly restarts: number;
  readonly ready: boolean;
  /** Set while the container does not run and has not ended, if the kubelet says so. */
  readonly waiting: { readonly reason: string; readonly message: string } | null;
  /** Set once the container's present run has ended. */
  readonly terminated: ContainerEnd | null;
  /** How its run before the present one ended; null where it has had none. */
  readonly lastTerminated: ContainerEnd | null;
};

export type PodConditionView = {
  readonly type: string;
  readonly status: string;
  readonly reason: string;
  readonly message: string;
  /** When its status last changed, as the cluster says; null where it does not. */
  readonly sinceMs: number | null;
};

/** What decisions need to know of a pod, read from its Kubernetes JSON. */
export type PodView = {
  readonly name: string;
  readonly uid: string;
  readonly labels: Readonly<Record<string, string>>;
  /** The uid of its controlling owner; null without one. */
  readonly controllerUid: string | null;
  readonly jobUid: string | null;
  /** 0 where the label is absent or no number, as for `attempt`. */
  readonly admission: number;
  readonly attempt: number;
  /** Replica type in lower case; null where the label is absent. */
  readonly role: string | null;
  /** Null where the label is absent or no number of 0 or more. */
  readonly index: number | null;
  readonly createTimeMs: number;
  readonly deleting: boolean;
  /** While it is being deleted: when the grace that it got for that ends; else null. */
  readonly deletionTimeMs: number | null;
  /** True if the cluster has no node of the name that it is bound to, as far as that was looked at. */
  readonly nodeGone: boolean;
  readonly phase: PodPhase;
  readonly ready: boolean;
  /** `Evicted`, `NodeLost`, … or empty. */
  readonly reason: string;
  readonly message: string;
  /** Kubernetes says that the platform ended it, not the program: the condition `DisruptionTarget`. */
  readonly disrupted: boolean;
  readonly nodeName: string;
  /** In the order that the cluster gives them. */
  readonly conditions: readonly PodConditionView[];
  readonly initContainers: readonly ContainerView[];
  readonly containers: readonly ContainerView[];
  readonly ephemeralContainers: readonly ContainerView[];
  /** The container that its annotation `primary_container_name` names; null without one. */
  readonly primaryContainer: string | null;
  /** `Always`, `OnFailure` or `Never`: which ends of its containers the kubelet answers by another run. */
  readonly restartPolicy: string;
  /** Restarts of its init containers, all together. */
  readonly initRestarts: number;
};

/** Names the container whose end is the pod's, as in Flyte's pod tasks. */
export const PRIMARY_CONTAINER_ANNOTATION = "primary_container_name";

const PHASES: readonly PodPhase[] = ["Pending", "Running", "Succeeded", "Failed"];

/** Reads a pod as the API server sends it; never throws, whatever the JSON holds. */
export function podView(pod: JsonObject): PodView {
  const metadata = objectAt(pod, "metadata");
  const status = objectAt(pod, "status");
  const spec = objectAt(pod, "spec");
  const labels = stringMapAt(metadata, "labels");
  const initContainers = arrayAt(status, "initContainerStatuses").map(containerView);
  const conditions = arrayAt(status, "conditions").map(conditionView);
  return {
    name: stringAt(metadata, "name") ?? "",
    uid: stringAt(metadata, "uid") ?? "",
    labels,
    controllerUid: controllerUid(metadata),
    jobUid: labels[LABEL.jobUid] ?? null,
    admission: wholeNumber(labels[LABEL.admission]) ?? 0,
    attempt: wholeNumber(labels[LABEL.attempt]) ?? 0,
    role: labels[LABEL.replicaType] ?? null,
    index: wholeNumber(labels[LABEL.replicaIndex]),
    createTimeMs: timeAt(metadata, "creationTimestamp") ?? 0,
    deleting: stringAt(metadata, "deletionTimestamp") !== undefined,
    deletionTimeMs: timeAt(metadata, "deletionTimestamp"),
    nodeGone: false,
    phase: podPhase(stringAt(status, "phase")),
    ready: isTrue(conditions, "Ready"),
    reason: stringAt(status, "reason") ?? "",
    message: stringAt(status, "message") ?? "",
    disrupted: isTrue(conditions, "DisruptionTarget"),
    nodeName: stringAt(spec, "nodeName") ?? "",
    conditions,
    initContainers,
    containers: arrayAt(status, "containerStatuses").map(containerView),
    ephemeralContainers: arrayAt(status, "ephemeralContainerStatuses").map(containerView),
    primaryContainer: stringMapAt(metadata, "annotations")[PRIMARY_CONTAINER_ANNOTATION] || null,
    restartPolicy: stringAt(spec, "restartPolicy") ?? "Always",
    initRestarts: initContainers.reduce((sum, one) => sum + one.restarts, 0),
  };
}

/** The uid of the owner that controls an object; null where nothing does. */
export function controllerUid(metadata: JsonObject): string | null {
  const owner = arrayAt(metadata, "ownerReferences").find(
    (reference) => isJsonObject(reference) && reference["controller"] === true,
  );
  return stringAt(owner, "uid") ?? null;
}

function podPhase(phase: string | undefined): PodPhase {
  return PHASES.find((known) => known === phase) ?? (phase === undefined ? "Pending" : "Unknown");
}

function containerView(container: unknown): ContainerView {
  const state = objectAt(container, "state");
  const { waiting } = state;
  return {
    name: stringAt(container, "name") ?? "",
    restarts: numberAt(container, "restartCount") ?? 0,
    ready: isJsonObject(container) && container["ready"] === true,
    waiting: isJsonObject(waiting) ? { reason: textAt(waiting, "reason"), message: textAt(waiting, "message") } : null,
    terminated: endAt(state),
    lastTerminated: endAt(objectAt(container, "lastState")),
  };
}

function endAt(state: JsonObject): ContainerEnd | null {
  const { terminated } = state;
  if (!isJsonObject(terminated)) return null;
  const exitCode = numberAt(terminated, "exitCode") ?? 0;
  return { exitCode, reason: textAt(terminated, "reason"), message: textAt(terminated, "message") };
}

function conditionView(condition: unknown): PodConditionView {
  return {
    type: textAt(condition, "type"),
    status: textAt(condition, "status"),
    reason: textAt(condition, "reason"),
    message: textAt(condition, "message"),
    sinceMs: timeAt(condition, "lastTransitionTime"),
  };
}

function isTrue(conditions: readonly PodConditionView[], wanted: string): boolean {
  return conditions.some(({ type, status }) => type === wanted && status === "True");
}

function textAt(value: unknown, member: string): string {
  return stringAt(value, member) ?? "";
}

function wholeNumber(text: string | undefined): number | null {
  return text !== undefined && /^\d{1,9}$/.test(text) ? Number(text) : null;
}

function timeAt(object: unknown, name: string): number | null {
  return Date.parse(stringAt(object, name) ?? "") || null;
}
