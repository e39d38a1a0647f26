import type { Json, JsonObject } from "../../../runtime/json.ts";

export type OwnerReference = {
  readonly apiVersion: string;
  readonly kind: string;
  readonly name: string;
  readonly uid: string;
  readonly controller?: boolean;
  readonly blockOwnerDeletion?: boolean;
};

export type ObjectMeta = {
  readonly name: string;
  readonly generateName?: string;
  readonly namespace?: string;
  /** The last twelve hexadecimal digits are the resource version of the creation. They order objects by age. */
  readonly uid: string;
  readonly resourceVersion: string;
  readonly generation?: number;
  readonly creationTimestamp: string;
  /** For a pod: the time of the delete call plus the grace period, as in Kubernetes. */
  readonly deletionTimestamp?: string;
  readonly deletionGracePeriodSeconds?: number;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly ownerReferences?: readonly OwnerReference[];
  readonly finalizers?: readonly string[];
};

/** A Kubernetes object. It is never changed in place, because histories and snapshots share it. */
export type KubeObject = {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: ObjectMeta;
  readonly spec?: JsonObject;
  readonly status?: JsonObject;
  readonly [member: string]: Json | undefined;
};

/** The kubelet's state of a pod. The times in the pod's status are not enough: they are whole seconds. */
export type PodRun = {
  readonly stage: "initializing" | "pulling" | "starting" | "running" | "backingOff" | "stopping";
  /** When the stage began. */
  readonly sinceMs: number;
  /** When the stage ends. Null: only the deletion of the pod ends it. */
  readonly dueMs: number | null;
  readonly initDone: number;
  readonly restarts: number;
  /** The last two runs of its containers, for the pod's logs. Omitted: no run yet. */
  readonly runs?: readonly ContainerRun[];
};

/** One run of a pod's containers. */
export type ContainerRun = {
  readonly startedMs: number;
  /** Null: still running. */
  readonly endedMs: number | null;
  readonly exitCode: number | null;
};

/** An object as the store keeps it. `run` is null for other objects than pods, and for pods that no kubelet has. */
export type StoredObject = { readonly object: KubeObject; readonly run: PodRun | null };

/** Identifies an object: its resource (`pods`), and the key `namespace/name`, or `name` if it has no namespace. */
export type ObjectKey = { readonly resource: string; readonly key: string };

/** Returns an object's key within its resource. */
export function keyOf(metadata: { readonly namespace?: string; readonly name: string }): string {
  return metadata.namespace === undefined ? metadata.name : `${metadata.namespace}/${metadata.name}`;
}

/** Returns the resource version of an object's creation. It orders objects by age, also within one second. */
export function createdAtVersion(object: KubeObject): number {
  return Number.parseInt(object.metadata.uid.slice(-12), 16) || 0;
}

/** Formats a time as Kubernetes does: in whole seconds. */
export function kubeTime(ms: number): string {
  return new Date(ms).toISOString().replace(/\.\d+Z$/, "Z");
}

/** True if a pod has succeeded or failed. */
export function isTerminalPod(pod: KubeObject): boolean {
  const phase = pod.status?.["phase"];
  return phase === "Succeeded" || phase === "Failed";
}

/** Copies an object without some of its members. */
export function without<T extends object, M extends keyof T>(object: T, ...members: readonly M[]): Omit<T, M> {
  const rest: Partial<T> = { ...object };
  for (const member of members) delete rest[member];
  return rest as Omit<T, M>;
}
