/** Serves tests of clean-up: deletes objects whose owners are gone, as Kubernetes' garbage collector does. */
import { stringAt } from "../../runtime/json.ts";
import { servedKinds } from "./objects/custom-kinds.ts";
import { deleteObject, FOREGROUND_FINALIZER, hasOwners, removeIfReleased, withoutOwners } from "./objects/deletion.ts";
import type { KubeObject, ObjectKey, OwnerReference, StoredObject } from "./objects/kube-object.ts";
import { isTerminalPod, keyOf } from "./objects/kube-object.ts";
import type { ObjectStore } from "./objects/object-store.ts";
import { withConditions } from "./pods/pod-status.ts";

/** How long an Event object is kept. The default of kube-apiserver. */
const EVENT_TTL_MS = 3_600_000;

/**
 * Deletes objects that Kubernetes' controllers would delete: objects without owners, pods of removed nodes, the content
 * of deleted namespaces, and old events. Gangway relies on this to remove an admission's objects with their anchor.
 */
export class GarbageCollector {
  readonly #store: ObjectStore;
  readonly #suspects = new Map<string, ObjectKey>();
  readonly #terminating = new Set<string>();
  readonly #contents = new Map<string, number>();
  /** Creation times by key, oldest first. */
  readonly #events = new Map<string, number>();

  constructor(store: ObjectStore) {
    this.#store = store;
    store.observe((resource, before, after) => {
      this.#count(before, after);
      if (after === null) this.#onRemoval(resource, before);
      else this.#onChange(resource, after, before === null);
    });
  }

  /** True while `run` has work. */
  get busy(): boolean {
    return this.#suspects.size > 0 || this.#terminating.size > 0;
  }

  /** When the oldest Event object expires. Null: there is none. */
  eventsDueMs(): number | null {
    const [oldest] = this.#events.values();
    return oldest === undefined ? null : oldest + EVENT_TTL_MS;
  }

  /** Checks all suspects, then those that their deletion adds, until there are none. Removes expired events. */
  run(nowMs: number): void {
    while (this.busy) {
      for (const [id, at] of [...this.#suspects]) {
        this.#suspects.delete(id);
        this.#check(at, nowMs);
      }
      for (const namespace of [...this.#terminating]) {
        this.#terminating.delete(namespace);
        this.#empty(namespace);
      }
    }
    for (const [key, createdMs] of this.#events) {
      if (createdMs + EVENT_TTL_MS > nowMs) break;
      this.#store.remove("events", key);
    }
  }

  #onChange(resource: string, object: KubeObject, isNew: boolean): void {
    const { metadata } = object;
    const deleting = metadata.deletionTimestamp !== undefined;
    if (isNew && resource === "events") this.#events.set(keyOf(metadata), Date.parse(metadata.creationTimestamp));
    if (resource === "namespaces" && deleting) this.#terminating.add(metadata.name);
    const foreground = deleting && (metadata.finalizers ?? []).includes(FOREGROUND_FINALIZER);
    const podOfNode = isNew && resource === "pods" && stringAt(object.spec, "nodeName") !== undefined;
    if (foreground || podOfNode || (isNew && hasOwners(object))) this.#suspect(resource, keyOf(metadata));
  }

  #onRemoval(resource: string, object: KubeObject | null): void {
    if (object === null) return;
    const { metadata } = object;
    if (resource === "events") this.#events.delete(keyOf(metadata));
    for (const at of this.#store.dependents(metadata.uid)) this.#suspect(at.resource, at.key);
    for (const { uid } of metadata.ownerReferences ?? []) {
      const owner = this.#store.byUid(uid);
      if (owner?.entry.object.metadata.deletionTimestamp !== undefined) this.#suspect(owner.resource, owner.key);
    }
    if (resource === "nodes") this.#dropPodsOf(metadata.name);
    if (metadata.namespace !== undefined && (this.#contents.get(metadata.namespace) ?? 0) === 0) {
      this.#terminating.add(metadata.namespace);
    }
  }

  /** Runs at once, so that a new node of the same name does not get these pods. */
  #dropPodsOf(node: string): void {
    for (const pod of [...this.#store.objects("pods")]) {
      if (stringAt(pod.spec, "nodeName") !== node) continue;
      const entry = this.#store.get("pods", keyOf(pod.metadata));
      if (entry !== undefined) this.#dropPod(entry, this.#store.nowMs);
    }
  }

  #suspect(resource: string, key: string): void {
    this.#suspects.set(`${resource}/${key}`, { resource, key });
  }

  #count(before: KubeObject | null, after: KubeObject | null): void {
    const namespace = (after ?? before)?.metadata.namespace;
    if (namespace === undefined) return;
    const change = (after === null ? 0 : 1) - (before === null ? 0 : 1);
    if (change !== 0) this.#contents.set(namespace, (this.#contents.get(namespace) ?? 0) + change);
  }

  #check(at: ObjectKey, nowMs: number): void {
    const entry = this.#store.get(at.resource, at.key);
    if (entry === undefined) return;
    if (at.resource === "pods" && this.#nodeIsGone(entry.object)) {
      this.#dropPod(entry, nowMs);
      return;
    }
    const owners = entry.object.metadata.ownerReferences ?? [];
    const absent = owners.filter((owner) => this.#isAbsent(owner, entry.object));
    if (absent.length > 0 && absent.length === owners.length) {
      if (entry.object.metadata.deletionTimestamp === undefined)
        deleteObject(this.#store, at.resource, entry.object, {});
    } else if (absent.length > 0) {
      const kept = withoutOwners(
        entry.object,
        absent.map((owner) => owner.uid),
      );
      this.#store.put(at.resource, kept, entry.run);
    }
    this.#finishForeground(at);
  }

  /** Owners of API groups that this cluster does not serve count as present, as in Kubernetes' garbage collector. */
  #isAbsent(owner: OwnerReference, of: KubeObject): boolean {
    const isServed = servedKinds(this.#store).some((kind) => kind.apiVersion === owner.apiVersion);
    if (!isServed) return false;
    const found = this.#store.byUid(owner.uid)?.entry.object;
    if (found === undefined || found.kind !== owner.kind || found.metadata.name !== owner.name) return true;
    return found.metadata.namespace !== undefined && found.metadata.namespace !== of.metadata.namespace;
  }

  #finishForeground({ resource, key }: ObjectKey): void {
    const entry = this.#store.get(resource, key);
    const metadata = entry?.object.metadata;
    if (entry === undefined || !metadata?.finalizers?.includes(FOREGROUND_FINALIZER)) return;
    let blocked = false;
    for (const at of this.#store.dependents(metadata.uid)) {
      const dependent = this.#store.get(at.resource, at.key)?.object;
      if (dependent === undefined) continue;
      if (dependent.metadata.deletionTimestamp === undefined) deleteObject(this.#store, at.resource, dependent, {});
      const blocks = dependent.metadata.ownerReferences?.some(
        (owner) => owner.uid === metadata.uid && owner.blockOwnerDeletion,
      );
      if (blocks && this.#store.get(at.resource, at.key) !== undefined) blocked = true;
    }
    if (blocked) return;
    const finalizers = metadata.finalizers.filter((finalizer) => finalizer !== FOREGROUND_FINALIZER);
    removeIfReleased(
      this.#store,
      resource,
      this.#store.put(resource, { ...entry.object, metadata: { ...metadata, finalizers } }, entry.run),
    );
  }

  #nodeIsGone(pod: KubeObject): boolean {
    const node = stringAt(pod.spec, "nodeName");
    return node !== undefined && this.#store.get("nodes", node) === undefined;
  }

  /** Fails and removes a pod whose node is gone, with the condition that Kubernetes' pod garbage collector sets. */
  #dropPod({ object: pod, run }: StoredObject, nowMs: number): void {
    const condition = { status: "True", reason: "DeletionByPodGC", message: "PodGC: node no longer exists" } as const;
    const status = withConditions(pod.status ?? {}, { DisruptionTarget: condition }, nowMs);
    const failed = isTerminalPod(pod)
      ? pod
      : this.#store.put("pods", { ...pod, status: { ...status, phase: "Failed" } }, run);
    deleteObject(this.#store, "pods", failed, { graceSeconds: 0 });
  }

  #empty(name: string): void {
    const namespace = this.#store.get("namespaces", name)?.object;
    if (namespace?.metadata.deletionTimestamp === undefined) return;
    for (const { resource, namespaced } of servedKinds(this.#store)) {
      if (!namespaced) continue;
      for (const object of [...this.#store.objects(resource)]) {
        if (object.metadata.namespace !== name || object.metadata.deletionTimestamp !== undefined) continue;
        deleteObject(this.#store, resource, object, {});
      }
    }
    if ((this.#contents.get(name) ?? 0) === 0) this.#store.remove("namespaces", name);
  }
}
