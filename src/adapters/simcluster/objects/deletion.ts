import { arrayAt, numberAt, stringAt } from "../../../runtime/json.ts";
import type { KubeObject } from "./kube-object.ts";
import { isTerminalPod, keyOf, kubeTime } from "./kube-object.ts";
import type { ObjectStore } from "./object-store.ts";

export type Propagation = "Background" | "Foreground" | "Orphan";

export type DeletionOptions = {
  /** Omitted: the pod's own grace period. Other kinds have none. */
  readonly graceSeconds?: number | undefined;
  readonly propagation?: Propagation | undefined;
};

export const FOREGROUND_FINALIZER = "foregroundDeletion";

/**
 * Marks an object as deleted. Removes it at once if it has no grace period, no finalizer, and is no namespace. Returns
 * its last state.
 */
export function deleteObject(
  store: ObjectStore,
  resource: string,
  object: KubeObject,
  options: DeletionOptions,
): KubeObject {
  if (options.propagation === "Orphan") disown(store, object.metadata.uid);
  const finalizers = [...(object.metadata.finalizers ?? [])];
  const waitsForDependents = options.propagation === "Foreground" && store.dependents(object.metadata.uid).length > 0;
  if (waitsForDependents && !finalizers.includes(FOREGROUND_FINALIZER)) finalizers.push(FOREGROUND_FINALIZER);
  const graceSeconds = resource === "pods" ? podGraceSeconds(object, options.graceSeconds) : 0;
  const key = keyOf(object.metadata);
  if (resource !== "namespaces" && graceSeconds === 0 && finalizers.length === 0) {
    return removeNow(store, resource, object);
  }
  const marked = mark(object, graceSeconds, finalizers, store.nowMs);
  return marked === object ? object : store.put(resource, marked, store.get(resource, key)?.run ?? null);
}

/** The last state of a pod shows a grace period of 0. */
function removeNow(store: ObjectStore, resource: string, object: KubeObject): KubeObject {
  const last = store.remove(resource, keyOf(object.metadata)) ?? object;
  return resource === "pods" ? mark(last, 0, [], store.nowMs) : last;
}

/** Removes an object that is marked as deleted, once it has no finalizer, no grace period, and is no namespace. */
export function removeIfReleased(store: ObjectStore, resource: string, object: KubeObject): void {
  const { metadata } = object;
  if (metadata.deletionTimestamp === undefined || (metadata.finalizers ?? []).length > 0) return;
  if (resource === "namespaces" || (metadata.deletionGracePeriodSeconds ?? 0) > 0) return;
  store.remove(resource, keyOf(metadata));
}

/** A pod that is not bound or has ended has no grace period. Source: Kubernetes' `CheckGracefulDelete` of pods. */
function podGraceSeconds(pod: KubeObject, requested: number | undefined): number {
  if (stringAt(pod.spec, "nodeName") === undefined || isTerminalPod(pod)) return 0;
  const graceSeconds = requested ?? numberAt(pod.spec, "terminationGracePeriodSeconds") ?? 30;
  return graceSeconds < 0 ? 1 : graceSeconds;
}

/** A second delete call can only shorten the grace period of the first. */
function mark(object: KubeObject, graceSeconds: number, finalizers: readonly string[], nowMs: number): KubeObject {
  const { metadata } = object;
  const previousSeconds = metadata.deletionGracePeriodSeconds ?? 0;
  const keepsTime = metadata.deletionTimestamp !== undefined && graceSeconds >= previousSeconds;
  if (keepsTime && finalizers.length === (metadata.finalizers ?? []).length) return object;
  return {
    ...object,
    metadata: {
      ...metadata,
      ...(finalizers.length > 0 ? { finalizers } : {}),
      deletionTimestamp: keepsTime ? (metadata.deletionTimestamp ?? "") : kubeTime(nowMs + graceSeconds * 1000),
      deletionGracePeriodSeconds: keepsTime ? previousSeconds : graceSeconds,
    },
    ...(object.kind === "Namespace" ? { status: { ...object.status, phase: "Terminating" } } : {}),
  };
}

/** Removes an owner from the references of its dependents, for the policy `Orphan`. */
function disown(store: ObjectStore, ownerUid: string): void {
  for (const { resource, key } of store.dependents(ownerUid)) {
    const entry = store.get(resource, key);
    if (entry === undefined) continue;
    store.put(resource, withoutOwners(entry.object, [ownerUid]), entry.run);
  }
}

/** Returns the object without its references to these owners. */
export function withoutOwners(object: KubeObject, uids: readonly string[]): KubeObject {
  const { ownerReferences, ...rest } = object.metadata;
  const kept = (ownerReferences ?? []).filter((owner) => !uids.includes(owner.uid));
  return { ...object, metadata: { ...rest, ...(kept.length > 0 ? { ownerReferences: kept } : {}) } };
}

/** True if an object has owner references. */
export function hasOwners(object: KubeObject): boolean {
  return arrayAt(object.metadata, "ownerReferences").length > 0;
}
