/**
 * Reads the facts of a pod from its Kubernetes JSON. Every decision about a user's pods starts from these facts, so
 * malformed JSON must never stop a decision.
 */

import { foreignText } from "../../../runtime/foreign-text.ts";
import type { JsonObject } from "../../../runtime/json.ts";
import { arrayAt, isJsonObject, numberAt, objectAt, stringAt, stringMapAt } from "../../../runtime/json.ts";
import { LABEL } from "../../job/labels.ts";

export type PodPhase = "Pending" | "Running" | "Succeeded" | "Failed" | "Unknown";

/** How a run of a container ended. */
export type ContainerEnd = { readonly exitCode: number; readonly reason: string; readonly message: string };

export type ContainerView = {
  readonly name: string;
  readonly restarts: number;
  readonly ready: boolean;
  /** The reason while the container waits, if the kubelet reports one. */
  readonly waiting: { readonly reason: string; readonly message: string } | null;
  /** Set once the container's present run has ended. */
  readonly terminated: ContainerEnd | null;
  /** When its present run began. Null: it does not run, or that is not known. */
  readonly runningSinceMs: number | null;
  /** The end of the container's previous run. Null: there was none. */
  readonly lastTerminated: ContainerEnd | null;
};

export type PodConditionView = {
  readonly type: string;
  readonly status: string;
  readonly reason: string;
  readonly message: string;
  /** When the status last changed, as the cluster reports it. Null: unknown. */
  readonly sinceMs: number | null;
};

/** The facts of a pod that decisions need, read from its Kubernetes JSON. */
export type PodView = {
  readonly name: string;
  readonly uid: string;
  readonly labels: Readonly<Record<string, string>>;
  /** The uid of the controlling owner. Null: none. */
  readonly controllerUid: string | null;
  readonly jobUid: string | null;
  /** True: Gangway has released it, and no other owner has it. It belongs to no job, whatever labels it has. */
  readonly released?: true;
  /** 0 if the label is missing or not a number. The same for `attempt`. */
  readonly admission: number;
  readonly attempt: number;
  /** The replica type in lower case. Null if the label is missing. */
  readonly role: string | null;
  /** Null if the label is missing or not a number of at least 0. */
  readonly index: number | null;
  readonly createTimeMs: number;
  readonly deleting: boolean;
  /** When the grace time of its deletion ends. Null unless it is being deleted. */
  readonly deletionTimeMs: number | null;
  /** True if it is being deleted and all its containers had ended before, so that its end is its program's. */
  readonly endedFirst: boolean;
  /** True if the cluster is known to have no node of the name that the pod is bound to. */
  readonly nodeGone: boolean;
  /** Set if its node has stopped to report to its cluster. `sinceMs`: null if that is not known. */
  readonly nodeSilent: { readonly sinceMs: number | null } | null;
  readonly phase: PodPhase;
  readonly ready: boolean;
  /** The reason, such as `Evicted` or `NodeLost`. May be empty. */
  readonly reason: string;
  readonly message: string;
  /** True if Kubernetes reports that the platform ended the pod: the condition `DisruptionTarget`. */
  readonly disrupted: boolean;
  readonly nodeName: string;
  /** The labels of the node that it is bound to. Omitted: it is bound to none, or they are not known. */
  readonly nodeLabels?: Readonly<Record<string, string>>;
  /** The scheduler that must place the pod. Empty: unknown. */
  readonly schedulerName: string;
  /** In the order of the cluster's answer. */
  readonly conditions: readonly PodConditionView[];
  readonly initContainers: readonly ContainerView[];
  readonly containers: readonly ContainerView[];
  readonly ephemeralContainers: readonly ContainerView[];
  /** The container that the annotation `primary_container_name` names. Null: none. */
  readonly primaryContainer: string | null;
  /** `Always`, `OnFailure` or `Never`: when the kubelet restarts containers. */
  readonly restartPolicy: string;
  /** The restarts of all init containers together. */
  readonly initRestarts: number;
};

/** The annotation that names the primary container, as in Flyte's pod tasks. */
export const PRIMARY_CONTAINER_ANNOTATION = "primary_container_name";

const PHASES: readonly PodPhase[] = ["Pending", "Running", "Succeeded", "Failed"];

/** Reads a pod from the JSON of the API server. Never throws, whatever the JSON holds. */
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
    ...(isReleased(metadata) ? { released: true } : {}),
    admission: wholeNumber(labels[LABEL.admission]) ?? 0,
    attempt: wholeNumber(labels[LABEL.attempt]) ?? 0,
    role: labels[LABEL.replicaType] ?? null,
    index: wholeNumber(labels[LABEL.replicaIndex]),
    createTimeMs: timeAt(metadata, "creationTimestamp") ?? 0,
    deleting: stringAt(metadata, "deletionTimestamp") !== undefined,
    deletionTimeMs: timeAt(metadata, "deletionTimestamp"),
    endedFirst: hasEndedFirst(metadata, status),
    nodeGone: false,
    nodeSilent: null,
    phase: podPhase(stringAt(status, "phase")),
    ready: isTrue(conditions, "Ready"),
    reason: reasonAt(status),
    message: wordsAt(status, "message"),
    disrupted: isTrue(conditions, "DisruptionTarget"),
    nodeName: textAt(spec, "nodeName"),
    schedulerName: textAt(spec, "schedulerName"),
    conditions,
    initContainers,
    containers: arrayAt(status, "containerStatuses").map(containerView),
    ephemeralContainers: arrayAt(status, "ephemeralContainerStatuses").map(containerView),
    primaryContainer: stringMapAt(metadata, "annotations")[PRIMARY_CONTAINER_ANNOTATION] || null,
    restartPolicy: stringAt(spec, "restartPolicy") ?? "Always",
    initRestarts: initContainers.reduce((sum, one) => sum + one.restarts, 0),
  };
}

/** True for a pod that Kubernetes reports as ended. */
export function hasEnded({ phase }: Pick<PodView, "phase">): boolean {
  return phase === "Succeeded" || phase === "Failed";
}

/** True for a pod whose program ended by itself: not because the pod was deleted. */
export function hasEndedItself(pod: Pick<PodView, "phase" | "deleting" | "endedFirst">): boolean {
  return hasEnded(pod) && (!pod.deleting || pod.endedFirst);
}

/** How often containers of a pod were restarted, init containers included. */
export function containerRestarts({ containers, initRestarts }: PodView): number {
  return containers.reduce((sum, { restarts }) => sum + restarts, initRestarts);
}

function isReleased(metadata: JsonObject): boolean {
  return controllerUid(metadata) === null && stringMapAt(metadata, "annotations")[LABEL.released] !== undefined;
}

/** The uid of the owner that controls an object. Null: none. */
export function controllerUid(metadata: JsonObject): string | null {
  const owner = arrayAt(metadata, "ownerReferences").find(
    (reference) => isJsonObject(reference) && reference["controller"] === true,
  );
  return stringAt(owner, "uid") ?? null;
}

/**
 * True if every container ended before the deletion was requested. Kubernetes sets the deletion time to the request
 * plus the grace time, and counts both in seconds. An end in the second of the request counts as caused by it.
 */
function hasEndedFirst(metadata: JsonObject, status: JsonObject): boolean {
  const deletionTimeMs = timeAt(metadata, "deletionTimestamp");
  if (deletionTimeMs === null) return false;
  const requestedMs = deletionTimeMs - (numberAt(metadata, "deletionGracePeriodSeconds") ?? 0) * 1000;
  const states = arrayAt(status, "containerStatuses").map((one) => objectAt(objectAt(one, "state"), "terminated"));
  return states.length > 0 && states.every((end) => (timeAt(end, "finishedAt") ?? Infinity) < requestedMs);
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
    waiting: isJsonObject(waiting) ? { reason: reasonAt(waiting), message: wordsAt(waiting, "message") } : null,
    terminated: endAt(state),
    runningSinceMs: timeAt(objectAt(state, "running"), "startedAt"),
    lastTerminated: endAt(objectAt(container, "lastState")),
  };
}

function endAt(state: JsonObject): ContainerEnd | null {
  const { terminated } = state;
  if (!isJsonObject(terminated)) return null;
  const exitCode = numberAt(terminated, "exitCode") ?? 0;
  return { exitCode, reason: reasonAt(terminated), message: wordsAt(terminated, "message") };
}

function conditionView(condition: unknown): PodConditionView {
  return {
    type: textAt(condition, "type"),
    status: textAt(condition, "status"),
    reason: reasonAt(condition),
    message: wordsAt(condition, "message"),
    sinceMs: timeAt(condition, "lastTransitionTime"),
  };
}

function isTrue(conditions: readonly PodConditionView[], wanted: string): boolean {
  return conditions.some(({ type, status }) => type === wanted && status === "True");
}

function textAt(value: unknown, member: string): string {
  return stringAt(value, member) ?? "";
}

/** Longer than every reason of Kubernetes: each is a word in CamelCase. */
const REASON_BYTES_MAX = 256;

function reasonAt(value: unknown): string {
  return foreignText(textAt(value, "reason"), REASON_BYTES_MAX);
}

/** Text for people, of any length. */
function wordsAt(value: unknown, member: string): string {
  return foreignText(textAt(value, member));
}

function wholeNumber(text: string | undefined): number | null {
  return text !== undefined && /^\d{1,9}$/.test(text) ? Number(text) : null;
}

function timeAt(object: unknown, name: string): number | null {
  return Date.parse(stringAt(object, name) ?? "") || null;
}
