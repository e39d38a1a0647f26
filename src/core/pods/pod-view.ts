import type { JsonObject } from "../../runtime/json.ts";
import { arrayAt, isJsonObject, numberAt, objectAt, stringAt, stringMapAt } from "../../runtime/json.ts";
import { LABEL } from "../job/labels.ts";

export type PodPhase = "Pending" | "Running" | "Succeeded" | "Failed" | "Unknown";

export type ContainerView = {
  readonly name: string;
  readonly restarts: number;
  readonly ready: boolean;
  /** Set once the container's present run has ended. */
  readonly terminated: { readonly exitCode: number; readonly reason: string; readonly message: string } | null;
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
  readonly phase: PodPhase;
  readonly ready: boolean;
  /** `Evicted`, `NodeLost`, … or empty. */
  readonly reason: string;
  readonly message: string;
  /** Kubernetes says that the platform ended it, not the program: the condition `DisruptionTarget`. */
  readonly disrupted: boolean;
  readonly nodeName: string;
  readonly containers: readonly ContainerView[];
  /** Restarts of its init containers, all together. */
  readonly initRestarts: number;
};

const PHASES: readonly PodPhase[] = ["Pending", "Running", "Succeeded", "Failed"];

/** Reads a pod as the API server sends it; never throws, whatever the JSON holds. */
export function podView(pod: JsonObject): PodView {
  const metadata = objectAt(pod, "metadata");
  const status = objectAt(pod, "status");
  const labels = stringMapAt(metadata, "labels");
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
    createTimeMs: Date.parse(stringAt(metadata, "creationTimestamp") ?? "") || 0,
    deleting: stringAt(metadata, "deletionTimestamp") !== undefined,
    phase: podPhase(stringAt(status, "phase")),
    ready: conditionTrue(status, "Ready"),
    reason: stringAt(status, "reason") ?? "",
    message: stringAt(status, "message") ?? "",
    disrupted: conditionTrue(status, "DisruptionTarget"),
    nodeName: stringAt(objectAt(pod, "spec"), "nodeName") ?? "",
    containers: arrayAt(status, "containerStatuses").map(containerView),
    initRestarts: arrayAt(status, "initContainerStatuses")
      .map(containerView)
      .reduce((sum, one) => sum + one.restarts, 0),
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
  const terminated = state["terminated"] === undefined ? null : objectAt(state, "terminated");
  return {
    name: stringAt(container, "name") ?? "",
    restarts: numberAt(container, "restartCount") ?? 0,
    ready: isJsonObject(container) && container["ready"] === true,
    terminated: terminated && {
      exitCode: numberAt(terminated, "exitCode") ?? 0,
      reason: stringAt(terminated, "reason") ?? "",
      message: stringAt(terminated, "message") ?? "",
    },
  };
}

function conditionTrue(status: JsonObject, type: string): boolean {
  return arrayAt(status, "conditions").some(
    (condition) => stringAt(condition, "type") === type && stringAt(condition, "status") === "True",
  );
}

function wholeNumber(text: string | undefined): number | null {
  return text !== undefined && /^\d{1,9}$/.test(text) ? Number(text) : null;
}
