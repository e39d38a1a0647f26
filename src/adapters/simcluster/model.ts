/** Serves the parts of a simulated cluster, which share one state: its objects, their versions, and its watchers. */

import { arrayAt, stringAt } from "../../runtime/json.ts";
import { minOf } from "../../runtime/lists.ts";
import { GarbageCollector } from "./garbage-collector.ts";
import { removeIfReleased } from "./objects/deletion.ts";
import type { KubeObject, StoredObject } from "./objects/kube-object.ts";
import { isTerminalPod, keyOf, kubeTime, without } from "./objects/kube-object.ts";
import type { ClusterSnapshot, ObjectChange } from "./objects/object-store.ts";
import { ObjectStore } from "./objects/object-store.ts";
import { Quotas } from "./objects/quota.ts";
import { DueQueue } from "./pods/due-queue.ts";
import { stepPod } from "./pods/kubelet.ts";
import { readPodScript } from "./pods/pod-script.ts";
import { Scheduler } from "./pods/scheduler.ts";

type ModelOptions = {
  readonly random: () => number;
  /** How many changes a watch may fall behind before it gets 410. Omitted: the default of `History`. */
  readonly historyMax?: number;
};

/**
 * A Kubernetes cluster without I/O: its objects, and the scheduler, kubelets and controllers that act on them. Tests of
 * the planner and the worker need a cluster whose every run is the same: here time comes only from `advance`, and
 * chance only from `random`.
 */
export class SimModel {
  readonly store: ObjectStore;
  readonly quotas: Quotas;
  readonly #scheduler: Scheduler;
  readonly #collector: GarbageCollector;
  /** Keys of pods by the time of their next step. An outdated time only causes a step that does nothing. */
  readonly #due = new DueQueue();
  /** Keys of pods that have changed since the last step of their kubelet. */
  readonly #changed = new Set<string>();

  constructor(snapshot: ClusterSnapshot, { random, historyMax }: ModelOptions) {
    this.store = new ObjectStore(snapshot, random, historyMax);
    this.quotas = new Quotas(this.store);
    this.#scheduler = new Scheduler(this.store);
    this.#collector = new GarbageCollector(this.store);
    this.store.observe((resource, before, after) => {
      if (resource === "pods" && after !== null) this.#onPodChange(after, before === null);
    });
  }

  get nowMs(): number {
    return this.store.nowMs;
  }

  /** The time of the next event, not before now. Null: nothing happens until the next call. */
  nextDueMs(): number | null {
    const dues = [
      this.#changed.size > 0 || this.#collector.busy || this.quotas.busy ? this.nowMs : null,
      this.#scheduler.dueMs,
      this.#collector.eventsDueMs(),
      this.#due.nextMs(),
    ].filter((due) => due !== null);
    return dues.length === 0 ? null : Math.max(this.nowMs, minOf(dues));
  }

  /** Runs all events until `toMs`, in the order of their times. Ignores a time in the past. */
  advance(toMs: number): void {
    for (let due = this.nextDueMs(); due !== null && due <= toMs; due = this.nextDueMs()) {
      this.store.nowMs = due;
      this.#turn(due);
    }
    this.store.nowMs = Math.max(this.store.nowMs, toMs);
  }

  /** Returns the changes since the last call, for the journal. */
  takeChanges(): readonly ObjectChange[] {
    return this.store.takeChanges();
  }

  snapshot(): ClusterSnapshot {
    return this.store.snapshot();
  }

  /** Makes a node unschedulable or schedulable, as `kubectl cordon` does. */
  cordonNode(name: string, unschedulable = true): void {
    const node = this.store.get("nodes", name)?.object;
    if (node === undefined) return;
    const spec = without(node.spec ?? {}, "unschedulable");
    this.store.put("nodes", { ...node, spec: unschedulable ? { ...spec, unschedulable } : spec }, null);
  }

  /** Removes a node. Its pods fail with the condition DisruptionTarget, and are deleted. */
  removeNode(name: string): void {
    this.store.remove("nodes", name);
  }

  #turn(nowMs: number): void {
    this.#collector.run(nowMs);
    this.#scheduler.run(nowMs);
    for (const key of [...this.#changed]) {
      this.#changed.delete(key);
      this.#runKubelet(key, nowMs);
    }
    for (let key = this.#due.pop(nowMs); key !== null; key = this.#due.pop(nowMs)) this.#runKubelet(key, nowMs);
    this.quotas.run();
  }

  #onPodChange(pod: KubeObject, isNew: boolean): void {
    const key = keyOf(pod.metadata);
    if (stringAt(pod.spec, "nodeName") === undefined) return;
    const run = this.store.get("pods", key)?.run;
    if (isNew && run?.dueMs !== null && run?.dueMs !== undefined) this.#due.push(run.dueMs, key);
    this.#changed.add(key);
  }

  #runKubelet(key: string, nowMs: number): void {
    let more = true;
    while (more) {
      const entry = this.store.get("pods", key);
      const node = this.store.get("nodes", stringAt(entry?.object.spec, "nodeName") ?? "")?.object;
      more = entry !== undefined && node !== undefined && this.#stepOnce(entry, node, nowMs);
    }
  }

  /** Returns true if the pod may have another step at once. */
  #stepOnce(entry: StoredObject, node: KubeObject, nowMs: number): boolean {
    if (entry.run === null && !isTerminalPod(entry.object)) this.#warnOfAnnotations(entry.object);
    const host = { ip: addressOf(node), exhausted: this.#scheduler.exhaustedResource(entry.object) };
    const step = stepPod(entry, host, nowMs);
    switch (step.kind) {
      case "nothing":
        return false;
      case "gone":
        this.#release(entry);
        return false;
      case "changed":
        this.#apply(entry, step);
        return true;
    }
  }

  /** Removes a deleted pod that its kubelet has stopped, unless a finalizer keeps it. */
  #release({ object, run }: StoredObject): void {
    const { metadata } = object;
    if ((metadata.finalizers ?? []).length === 0) {
      this.store.remove("pods", keyOf(metadata));
    } else if ((metadata.deletionGracePeriodSeconds ?? 0) > 0) {
      const released = { ...object, metadata: { ...metadata, deletionGracePeriodSeconds: 0 } };
      removeIfReleased(this.store, "pods", this.store.put("pods", released, run));
    }
  }

  #apply(entry: StoredObject, step: { readonly object: KubeObject; readonly run: StoredObject["run"] }): void {
    const key = keyOf(entry.object.metadata);
    if (step.object !== entry.object) this.store.put("pods", step.object, step.run);
    else if (step.run !== null) this.store.putRun("pods", key, step.run);
    if (step.run?.dueMs !== null && step.run?.dueMs !== undefined) this.#due.push(step.run.dueMs, key);
  }

  #warnOfAnnotations(pod: KubeObject): void {
    for (const annotation of readPodScript(pod.metadata.annotations ?? {}).malformed) {
      const text = pod.metadata.annotations?.[annotation] ?? "";
      this.#warn(pod, "InvalidSimAnnotation", `annotation ${annotation} cannot be read and is ignored: "${text}"`);
    }
  }

  #warn(pod: KubeObject, reason: string, message: string): void {
    const { name, namespace, uid } = pod.metadata;
    const at = kubeTime(this.nowMs);
    const eventUid = this.store.newUid();
    this.store.put(
      "events",
      {
        apiVersion: "v1",
        kind: "Event",
        metadata: {
          name: `${name}.${eventUid.slice(-16).replace("-", "")}`,
          ...(namespace === undefined ? {} : { namespace }),
          uid: eventUid,
          resourceVersion: "",
          creationTimestamp: at,
        },
        involvedObject: { apiVersion: "v1", kind: "Pod", name, namespace, uid },
        type: "Warning",
        reason,
        message,
        source: { component: "kubelet", host: stringAt(pod.spec, "nodeName") },
        firstTimestamp: at,
        lastTimestamp: at,
        count: 1,
      },
      null,
    );
  }
}

function addressOf(node: KubeObject): string {
  const addresses = arrayAt(node.status, "addresses");
  const internal = addresses.find((address) => stringAt(address, "type") === "InternalIP");
  return stringAt(internal, "address") ?? "10.0.0.1";
}
