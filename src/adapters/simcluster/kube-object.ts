import type { Json, JsonObject } from "../../runtime/json.ts";

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
  /** Its last twelve hexadecimal digits are the resource version that the object was created at, so uids also tell who is older. */
  readonly uid: string;
  readonly resourceVersion: string;
  readonly generation?: number;
  readonly creationTimestamp: string;
  /** For a pod this lies ahead by its grace period, as in Kubernetes. */
  readonly deletionTimestamp?: string;
  readonly deletionGracePeriodSeconds?: number;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly ownerReferences?: readonly OwnerReference[];
  readonly finalizers?: readonly string[];
};

/** A stored object; never changed in place, so that histories and snapshots may share it. */
export type KubeObject = {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: ObjectMeta;
  readonly spec?: JsonObject;
  readonly status?: JsonObject;
  readonly [member: string]: Json | undefined;
};

/** What the kubelet remembers of a pod beyond its status, whose times are only whole seconds. */
export type PodRun = {
  readonly stage: "initializing" | "pulling" | "starting" | "running" | "backingOff" | "stopping";
  /** When the stage began. */
  readonly sinceMs: number;
  /** When the stage ends; null: only by deletion. */
  readonly dueMs: number | null;
  readonly initDone: number;
  readonly restarts: number;
  /** The last two runs of its containers, which logs are made from; absent before the first. */
  readonly runs?: readonly ContainerRun[];
};

/** One run of a pod's containers. */
export type ContainerRun = {
  readonly startedMs: number;
  /** Null while it runs. */
  readonly endedMs: number | null;
  readonly exitCode: number | null;
};

export type Entry = { readonly object: KubeObject; readonly run: PodRun | null };

/** Where an object is kept: its resource (`pods`), and `namespace/name`, or `name` alone where it has no namespace. */
export type ObjectKey = { readonly resource: string; readonly key: string };

/** A stored object's key within its resource. */
export function keyOf(metadata: { readonly namespace?: string; readonly name: string }): string {
  return metadata.namespace === undefined ? metadata.name : `${metadata.namespace}/${metadata.name}`;
}

/** The resource version that an object was created at: orders objects by age, also those of one second. */
export function createdAtVersion(object: KubeObject): number {
  return Number.parseInt(object.metadata.uid.slice(-12), 16) || 0;
}

/** A time as Kubernetes' metadata shows it: whole seconds. */
export function kubeTime(ms: number): string {
  return new Date(ms).toISOString().replace(/\.\d+Z$/, "Z");
}

/** True once a pod has ended for good. */
export function isTerminalPod(pod: KubeObject): boolean {
  const phase = pod.status?.["phase"];
  return phase === "Succeeded" || phase === "Failed";
}

/** A copy of an object without some of its members. */
export function without<T extends object, M extends keyof T>(object: T, ...members: readonly M[]): Omit<T, M> {
  const rest: Partial<T> = { ...object };
  for (const member of members) delete rest[member];
  return rest as Omit<T, M>;
}
