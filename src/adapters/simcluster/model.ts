import { arrayAt, stringAt } from "../../runtime/json.ts";
import { Collector } from "./collector.ts";
import { removeIfReleased } from "./deletion.ts";
import { DueQueue } from "./due-queue.ts";
import { readFate } from "./fate.ts";
import type { Entry, KubeObject } from "./kube-object.ts";
import { isTerminalPod, keyOf, kubeTime, without } from "./kube-object.ts";
import { stepPod } from "./kubelet.ts";
import { Quotas } from "./quota.ts";
import { Scheduler } from "./scheduler.ts";
import type { Change, Snapshot } from "./store.ts";
import { Store } from "./store.ts";

export type ModelOptions = {
  readonly random: () => number;
  /** How many changes a watch may be behind. */
  readonly historyMax?: number;
};

/**
 * A Kubernetes cluster without I/O: its objects, and the scheduler, kubelets and controllers that move them on. Time comes
 * from `advance` alone, chance from `random`; the same calls give the same states.
 */
export class SimModel {
  readonly store: Store;
  readonly quotas: Quotas;
  readonly #scheduler: Scheduler;
  readonly #collector: Collector;
  /** Keys of pods by when their kubelet wants to look at them; entries of the past are harmless. */
  readonly #due = new DueQueue();
  /** Pods that changed and that a kubelet has not seen since. */
  readonly #unseen = new Set<string>();

  constructor(snapshot: Snapshot, { random, historyMax }: ModelOptions) {
    this.store = new Store(snapshot, random, historyMax);
    this.quotas = new Quotas(this.store);
    this.#scheduler = new Scheduler(this.store);
    this.#collector = new Collector(this.store);
    this.store.observe((resource, before, after) => {
      if (resource === "pods" && after !== null) this.#seePod(after, before === null);
    });
  }

  get nowMs(): number {
    return this.store.nowMs;
  }

  /** When something happens next by itself; null if only a call can change anything. Never before the present. */
  nextDueMs(): number | null {
    const dues = [
      this.#unseen.size > 0 || this.#collector.busy || this.quotas.busy ? this.nowMs : null,
      this.#scheduler.dueMs,
      this.#collector.eventsDueMs(),
      this.#due.nextMs(),
    ].filter((due) => due !== null);
    return dues.length === 0 ? null : Math.max(this.nowMs, Math.min(...dues));
  }

  /** Lets everything happen that is due until `toMs`, in the order of its time. Time never goes backwards. */
  advance(toMs: number): void {
    for (let due = this.nextDueMs(); due !== null && due <= toMs; due = this.nextDueMs()) {
      this.store.nowMs = due;
      this.#turn(due);
    }
    this.store.nowMs = Math.max(this.store.nowMs, toMs);
  }

  /** The changes since the last call, for the journal. */
  takeChanges(): readonly Change[] {
    return this.store.takeChanges();
  }

  snapshot(): Snapshot {
    return this.store.snapshot();
  }

  /** Stops or allows new pods on a node, as `kubectl cordon` does. */
  cordonNode(name: string, unschedulable = true): void {
    const node = this.store.get("nodes", name)?.object;
    if (node === undefined) return;
    const spec = without(node.spec ?? {}, "unschedulable");
    this.store.put("nodes", { ...node, spec: unschedulable ? { ...spec, unschedulable } : spec }, null);
  }

  /** Loses a node for good: its pods fail as disrupted, and go. */
  removeNode(name: string): void {
    this.store.remove("nodes", name);
  }

  #turn(nowMs: number): void {
    this.#collector.run(nowMs);
    this.#scheduler.run(nowMs);
    for (const key of [...this.#unseen]) {
      this.#unseen.delete(key);
      this.#runKubelet(key, nowMs);
    }
    for (let key = this.#due.pop(nowMs); key !== null; key = this.#due.pop(nowMs)) this.#runKubelet(key, nowMs);
    this.quotas.run();
  }

  #seePod(pod: KubeObject, isNew: boolean): void {
    const key = keyOf(pod.metadata);
    if (stringAt(pod.spec, "nodeName") === undefined) return;
    const run = this.store.get("pods", key)?.run;
    if (isNew && run?.dueMs !== null && run?.dueMs !== undefined) this.#due.push(run.dueMs, key);
    this.#unseen.add(key);
  }

  #runKubelet(key: string, nowMs: number): void {
    let more = true;
    while (more) {
      const entry = this.store.get("pods", key);
      const node = this.store.get("nodes", stringAt(entry?.object.spec, "nodeName") ?? "")?.object;
      more = entry !== undefined && node !== undefined && this.#stepOnce(entry, node, nowMs);
    }
  }

  /** True if there may be more to do for the pod at once. */
  #stepOnce(entry: Entry, node: KubeObject, nowMs: number): boolean {
    if (entry.run === null && !isTerminalPod(entry.object)) this.#warnOfAnnotations(entry.object);
    const step = stepPod(entry, { ip: addressOf(node), lacking: this.#scheduler.lacking(entry.object) }, nowMs);
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

  /** The kubelet is done with a deleted pod: it goes, unless a finalizer keeps it. */
  #release({ object, run }: Entry): void {
    const { metadata } = object;
    if ((metadata.finalizers ?? []).length === 0) {
      this.store.remove("pods", keyOf(metadata));
    } else if ((metadata.deletionGracePeriodSeconds ?? 0) > 0) {
      const released = { ...object, metadata: { ...metadata, deletionGracePeriodSeconds: 0 } };
      removeIfReleased(this.store, "pods", this.store.put("pods", released, run));
    }
  }

  #apply(entry: Entry, step: { readonly object: KubeObject; readonly run: Entry["run"] }): void {
    const key = keyOf(entry.object.metadata);
    if (step.object !== entry.object) this.store.put("pods", step.object, step.run);
    else if (step.run !== null) this.store.putRun("pods", key, step.run);
    if (step.run?.dueMs !== null && step.run?.dueMs !== undefined) this.#due.push(step.run.dueMs, key);
  }

  #warnOfAnnotations(pod: KubeObject): void {
    for (const annotation of readFate(pod.metadata.annotations ?? {}).malformed) {
      const text = pod.metadata.annotations?.[annotation] ?? "";
      this.#warn(
        pod,
        "InvalidSimAnnotation",
        `annotation ${annotation} cannot be read and counts as absent: "${text}"`,
      );
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
