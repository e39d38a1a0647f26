/** Serves the simulated API: keeps objects by key, and the history of changes that watches continue from. */

import { getOrCreate } from "../../../runtime/get-or-create.ts";
import { History } from "./history.ts";
import type { KubeObject, ObjectKey, ObjectMeta, PodRun, StoredObject } from "./kube-object.ts";
import { createdAtVersion, keyOf } from "./kube-object.ts";

/** One change, as the journal saves it. `object` is the new state, or the last state of an object that is gone. */
export type ObjectChange = {
  readonly resource: string;
  readonly object: KubeObject;
  readonly run: PodRun | null;
  readonly gone: boolean;
};

/** Called after every change. `before` is null for a new object, `after` for an object that is gone. */
export type ObjectObserver = (resource: string, before: KubeObject | null, after: KubeObject | null) => void;

/** The whole state of a cluster, as JSON. */
export type ClusterSnapshot = {
  readonly nowMs: number;
  readonly version: number;
  readonly entries: readonly { readonly resource: string; readonly object: KubeObject; readonly run: PodRun | null }[];
};

/**
 * Stores the cluster's objects, as etcd does for a real API server: with versions, a history, and indexes by uid and
 * owner. The rules of Kubernetes are elsewhere.
 */
export class ObjectStore {
  nowMs: number;
  readonly history: History;
  readonly #random: () => number;
  readonly #byResource = new Map<string, Map<string, StoredObject>>();
  readonly #byUid = new Map<string, ObjectKey>();
  readonly #dependents = new Map<string, Map<string, ObjectKey>>();
  readonly #observers: ObjectObserver[] = [];
  #changes: ObjectChange[] = [];
  #version: number;

  constructor(snapshot: ClusterSnapshot, random: () => number, historyMax?: number) {
    this.nowMs = snapshot.nowMs;
    this.#version = snapshot.version;
    this.#random = random;
    this.history = new History(snapshot.version, historyMax);
    for (const { resource, object, run } of snapshot.entries) {
      this.#entries(resource).set(keyOf(object.metadata), { object, run });
      this.#index(resource, object);
    }
  }

  get version(): number {
    return this.#version;
  }

  /** Calls `observer` for all objects, oldest first, and then for every change. */
  observe(observer: ObjectObserver): void {
    this.#observers.push(observer);
    const all: { resource: string; object: KubeObject }[] = [];
    for (const [resource, entries] of this.#byResource) {
      for (const { object } of entries.values()) all.push({ resource, object });
    }
    all.sort((a, b) => createdAtVersion(a.object) - createdAtVersion(b.object));
    for (const { resource, object } of all) observer(resource, null, object);
  }

  get(resource: string, key: string): StoredObject | undefined {
    return this.#entries(resource).get(key);
  }

  byUid(uid: string): (ObjectKey & { readonly entry: StoredObject }) | undefined {
    const at = this.#byUid.get(uid);
    const entry = at && this.get(at.resource, at.key);
    return at && entry && { ...at, entry };
  }

  /** Returns the objects whose owner references have this uid. */
  dependents(uid: string): readonly ObjectKey[] {
    return [...(this.#dependents.get(uid)?.values() ?? [])];
  }

  *objects(resource: string): Generator<KubeObject> {
    for (const { object } of this.#entries(resource).values()) yield object;
  }

  /** Makes a uid that no object ever had, even if `random` repeats after a restart. */
  newUid(): string {
    const hex = (digits: number) => {
      let text = "";
      while (text.length < digits) text += Math.floor(this.#random() * 16).toString(16);
      return text;
    };
    const version = (this.#version + 1).toString(16).padStart(12, "0");
    const variant = "89ab"[Math.floor(this.#random() * 4)] ?? "8";
    return `${hex(8)}-${hex(4)}-4${hex(3)}-${variant}${hex(3)}-${version}`;
  }

  /** Makes the suffix of a generated name. Its letters form no words. Source: apimachinery `rand.String`. */
  nameSuffix(): string {
    const letters = "bcdfghjklmnpqrstvwxz2456789";
    return Array.from({ length: 5 }, () => letters[Math.floor(this.#random() * letters.length)]).join("");
  }

  /** Stores a new or changed object under the next version; returns the stored object. */
  put(resource: string, object: KubeObject, run: PodRun | null): KubeObject {
    const key = keyOf(object.metadata);
    const before = this.get(resource, key)?.object ?? null;
    const stored = this.#versioned(object);
    if (before !== null) this.#unindex(before);
    this.#entries(resource).set(key, { object: stored, run });
    this.#index(resource, stored);
    this.#record({ resource, object: stored, run, gone: false }, before);
    return stored;
  }

  /** Stores the kubelet's state of a pod. This is not visible in the API, and gets no new version. */
  putRun(resource: string, key: string, run: PodRun): void {
    const entry = this.get(resource, key);
    if (entry === undefined) return;
    this.#entries(resource).set(key, { object: entry.object, run });
    this.#changes.push({ resource, object: entry.object, run, gone: false });
  }

  /** Removes an object; returns its last state, with the version of the removal. */
  remove(resource: string, key: string): KubeObject | null {
    const entry = this.get(resource, key);
    if (entry === undefined) return null;
    this.#entries(resource).delete(key);
    this.#unindex(entry.object);
    const last = this.#versioned(entry.object);
    this.#record({ resource, object: last, run: null, gone: true }, entry.object);
    return last;
  }

  /** Returns the changes since the last call, for the journal. */
  takeChanges(): readonly ObjectChange[] {
    const taken = this.#changes;
    this.#changes = [];
    return taken;
  }

  snapshot(): ClusterSnapshot {
    const entries: ClusterSnapshot["entries"][number][] = [];
    for (const [resource, stored] of this.#byResource) {
      for (const { object, run } of stored.values()) entries.push({ resource, object, run });
    }
    return { nowMs: this.nowMs, version: this.#version, entries };
  }

  #entries(resource: string): Map<string, StoredObject> {
    return getOrCreate(this.#byResource, resource, () => new Map());
  }

  #versioned(object: KubeObject): KubeObject {
    this.#version += 1;
    const metadata: ObjectMeta = { ...object.metadata, resourceVersion: String(this.#version) };
    return { ...object, metadata };
  }

  #record(change: ObjectChange, before: KubeObject | null): void {
    const { resource, object, gone } = change;
    this.#changes.push(change);
    this.history.add({ version: this.#version, resource, object, before, removed: gone });
    for (const observer of this.#observers) observer(resource, before, gone ? null : object);
  }

  #index(resource: string, { metadata }: KubeObject): void {
    const at = { resource, key: keyOf(metadata) };
    this.#byUid.set(metadata.uid, at);
    for (const { uid } of metadata.ownerReferences ?? []) {
      getOrCreate(this.#dependents, uid, () => new Map()).set(metadata.uid, at);
    }
  }

  #unindex({ metadata }: KubeObject): void {
    this.#byUid.delete(metadata.uid);
    for (const { uid } of metadata.ownerReferences ?? []) {
      const of = this.#dependents.get(uid);
      of?.delete(metadata.uid);
      if (of?.size === 0) this.#dependents.delete(uid);
    }
  }
}
