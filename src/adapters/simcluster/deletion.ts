import { arrayAt, numberAt, stringAt } from "../../runtime/json.ts";
import type { KubeObject } from "./kube-object.ts";
import { isTerminalPod, keyOf, kubeTime } from "./kube-object.ts";
import type { Store } from "./store.ts";

export type Propagation = "Background" | "Foreground" | "Orphan";

export type DeletionWishes = {
  /** Undefined: the pod's own grace period. Other kinds have none. */
  readonly graceSeconds?: number | undefined;
  readonly propagation?: Propagation | undefined;
};

export const FOREGROUND_FINALIZER = "foregroundDeletion";

/**
 * Marks an object as deleted, and takes it out if nothing holds it: no grace period, no finalizer, no content of a namespace.
 * Returns its last or present state.
 */
export function deleteObject(store: Store, resource: string, object: KubeObject, wishes: DeletionWishes): KubeObject {
  if (wishes.propagation === "Orphan") disown(store, object.metadata.uid);
  const finalizers = [...(object.metadata.finalizers ?? [])];
  const holds = wishes.propagation === "Foreground" && store.dependents(object.metadata.uid).length > 0;
  if (holds && !finalizers.includes(FOREGROUND_FINALIZER)) finalizers.push(FOREGROUND_FINALIZER);
  const graceSeconds = resource === "pods" ? podGraceSeconds(object, wishes.graceSeconds) : 0;
  const key = keyOf(object.metadata);
  if (resource !== "namespaces" && graceSeconds === 0 && finalizers.length === 0) {
    return takeOut(store, resource, object);
  }
  const marked = mark(object, graceSeconds, finalizers, store.nowMs);
  return marked === object ? object : store.put(resource, marked, store.get(resource, key)?.run ?? null);
}

/** A pod that goes at once is shown as deleted without grace. */
function takeOut(store: Store, resource: string, object: KubeObject): KubeObject {
  const last = store.remove(resource, keyOf(object.metadata)) ?? object;
  return resource === "pods" ? mark(last, 0, [], store.nowMs) : last;
}

/** Takes out an object that was marked as deleted, if its last finalizer is gone and nothing else holds it. */
export function removeIfReleased(store: Store, resource: string, object: KubeObject): void {
  const { metadata } = object;
  if (metadata.deletionTimestamp === undefined || (metadata.finalizers ?? []).length > 0) return;
  if (resource === "namespaces" || (metadata.deletionGracePeriodSeconds ?? 0) > 0) return;
  store.remove(resource, keyOf(metadata));
}

/** A pod that is not bound or has ended needs no grace. Source: Kubernetes' pod strategy `CheckGracefulDelete`. */
function podGraceSeconds(pod: KubeObject, wished: number | undefined): number {
  if (stringAt(pod.spec, "nodeName") === undefined || isTerminalPod(pod)) return 0;
  const asked = wished ?? numberAt(pod.spec, "terminationGracePeriodSeconds") ?? 30;
  return asked < 0 ? 1 : asked;
}

/** A second delete may only shorten the grace period of the first. */
function mark(object: KubeObject, graceSeconds: number, finalizers: readonly string[], nowMs: number): KubeObject {
  const { metadata } = object;
  const had = metadata.deletionGracePeriodSeconds ?? 0;
  const longer = metadata.deletionTimestamp !== undefined && graceSeconds >= had;
  if (longer && finalizers.length === (metadata.finalizers ?? []).length) return object;
  return {
    ...object,
    metadata: {
      ...metadata,
      ...(finalizers.length > 0 ? { finalizers } : {}),
      deletionTimestamp: longer ? (metadata.deletionTimestamp ?? "") : kubeTime(nowMs + graceSeconds * 1000),
      deletionGracePeriodSeconds: longer ? had : graceSeconds,
    },
    ...(object.kind === "Namespace" ? { status: { ...object.status, phase: "Terminating" } } : {}),
  };
}

/** What an owner leaves behind under `Orphan` no longer names it. */
function disown(store: Store, ownerUid: string): void {
  for (const { resource, key } of store.dependents(ownerUid)) {
    const entry = store.get(resource, key);
    if (entry === undefined) continue;
    store.put(resource, withoutOwners(entry.object, [ownerUid]), entry.run);
  }
}

/** The object without its references to some owners. */
export function withoutOwners(object: KubeObject, uids: readonly string[]): KubeObject {
  const { ownerReferences, ...rest } = object.metadata;
  const kept = (ownerReferences ?? []).filter((owner) => !uids.includes(owner.uid));
  return { ...object, metadata: { ...rest, ...(kept.length > 0 ? { ownerReferences: kept } : {}) } };
}

/** True if an object names owners at all. */
export function hasOwners(object: KubeObject): boolean {
  return arrayAt(object.metadata, "ownerReferences").length > 0;
}
