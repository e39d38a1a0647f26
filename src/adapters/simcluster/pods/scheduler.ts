/** Serves users who try placement out: binds pods to nodes with room, and says why a pod fits on none. */
import type { NodeFacts, Taint } from "../../../core/pods/node-match.ts";
import { nodeAllows } from "../../../core/pods/node-match.ts";
import type { Resources } from "../../../core/pods/resources.ts";
import { addResources, fitsIn, podRequests, readResources, subtractResources } from "../../../core/pods/resources.ts";
import type { JsonObject } from "../../../runtime/json.ts";
import { arrayAt, canonicalJson, objectAt, stringAt } from "../../../runtime/json.ts";
import type { KubeObject } from "../objects/kube-object.ts";
import { isTerminalPod, keyOf } from "../objects/kube-object.ts";
import type { ObjectStore } from "../objects/object-store.ts";
import { conditionOf, withConditions } from "./pod-status.ts";

/** Collects changes for one round, because a round looks at every waiting pod. */
const ROUND_MS = 10;
/** The shortest time between two messages of a waiting pod. Each pod that ends would change all of them. */
const MESSAGE_MS = 5000;

type NodeState = { readonly facts: NodeFacts; readonly allocatable: Resources };
type WaitingPod = { readonly key: string; readonly shape: string; readonly requests: Resources };
type BoundPod = { readonly node: string; readonly requests: Resources };

/**
 * Plays kube-scheduler: binds pods to nodes, oldest first, each to the first node that allows it. Users of `gangway up`
 * see the same reasons for a waiting pod as on a real cluster.
 */
export class Scheduler {
  readonly #store: ObjectStore;
  readonly #nodes = new Map<string, NodeState>();
  readonly #bound = new Map<string, BoundPod>();
  readonly #used = new Map<string, Resources>();
  readonly #waiting = new Map<string, WaitingPod>();
  readonly #messageMs = new Map<string, number>();
  #dueMs: number | null = null;

  constructor(store: ObjectStore) {
    this.#store = store;
    store.observe((resource, before, after) => {
      if (resource === "pods") this.#onPodChange(before, after);
      else if (resource === "nodes") this.#onNodeChange(before, after);
    });
  }

  /** When the next round is due. Null: nothing has changed. */
  get dueMs(): number | null {
    return this.#dueMs;
  }

  /** Returns a resource that the pod requests, and of which its node's pods use more than it has. Null: none. */
  exhaustedResource(pod: KubeObject): string | null {
    const bound = this.#bound.get(pod.metadata.uid);
    const allocatable = bound && this.#nodes.get(bound.node)?.allocatable;
    if (bound === undefined || allocatable === undefined) return null;
    const used = this.#used.get(bound.node) ?? {};
    const exhausted = Object.entries(bound.requests).find(
      ([name, amount]) => amount > 0 && (used[name] ?? 0) > (allocatable[name] ?? 0),
    );
    return exhausted?.[0] ?? null;
  }

  /** Tries to place every waiting pod. */
  run(nowMs: number): void {
    if (this.#dueMs === null || this.#dueMs > nowMs) return;
    this.#dueMs = null;
    // Within a round, free resources only shrink: a shape of pod that did not fit once does not fit later.
    const refused = new Map<string, string>();
    for (const waiting of [...this.#waiting.values()]) {
      const pod = this.#store.get("pods", waiting.key)?.object;
      if (pod === undefined) continue;
      const reason = refused.get(waiting.shape) ?? this.#place(pod, waiting, nowMs);
      if (reason === null) continue;
      refused.set(waiting.shape, reason);
      this.#writeMessage(pod, reason, nowMs);
    }
  }

  /** Binds a pod; returns the reason if no node fits. */
  #place(pod: KubeObject, waiting: WaitingPod, nowMs: number): string | null {
    for (const [name, node] of this.#nodes) {
      if (!nodeAllows(pod.spec ?? {}, node.facts) || !this.#fits(waiting.requests, name, node)) continue;
      const status = withConditions(pod.status ?? {}, { PodScheduled: { status: "True" } }, nowMs);
      this.#store.put("pods", { ...pod, spec: { ...pod.spec, nodeName: name }, status }, null);
      return null;
    }
    return this.#explain(pod, waiting.requests);
  }

  #fits(requests: Resources, name: string, node: NodeState): boolean {
    return fitsIn(requests, subtractResources(node.allocatable, this.#used.get(name) ?? {}));
  }

  /** Explains why no node fits, as kube-scheduler does: a node's reason is the first plugin that refuses it. */
  #explain(pod: KubeObject, requests: Resources): string {
    const total = this.#nodes.size;
    if (total === 0) return "no nodes available to schedule pods";
    const counts = new Map<string, number>();
    for (const [name, node] of this.#nodes) {
      const free = subtractResources(node.allocatable, this.#used.get(name) ?? {});
      for (const reason of nodeReasons(pod.spec ?? {}, node.facts, requests, free)) {
        counts.set(reason, (counts.get(reason) ?? 0) + 1);
      }
    }
    const reasons = [...counts].map(([reason, count]) => `${count} ${reason}`).sort();
    const preemption = `preemption: 0/${total} nodes are available: ${total} Preemption is not helpful for scheduling.`;
    return `0/${total} nodes are available: ${reasons.join(", ")}. ${preemption}`;
  }

  #writeMessage(pod: KubeObject, message: string, nowMs: number): void {
    const condition = conditionOf(pod.status, "PodScheduled");
    if (stringAt(condition, "message") === message) return;
    const { uid } = pod.metadata;
    const lastMs = this.#messageMs.get(uid);
    if (lastMs !== undefined && nowMs - lastMs < MESSAGE_MS) return;
    this.#messageMs.set(uid, nowMs);
    const change = { PodScheduled: { status: "False", reason: "Unschedulable", message } } as const;
    this.#store.put("pods", { ...pod, status: withConditions(pod.status ?? {}, change, nowMs) }, null);
  }

  #onPodChange(before: KubeObject | null, after: KubeObject | null): void {
    const uid = (after ?? before)?.metadata.uid ?? "";
    const wasBound = this.#bound.get(uid);
    const node = after === null || isTerminalPod(after) ? undefined : stringAt(after.spec, "nodeName");
    if (after !== null && node !== undefined && wasBound === undefined)
      this.#charge(uid, node, podRequests(after.spec ?? {}));
    if (wasBound !== undefined && node === undefined) this.#free(uid, wasBound);
    if (after !== null && needsNode(after)) this.#enqueue(after);
    else {
      this.#waiting.delete(uid);
      this.#messageMs.delete(uid);
    }
  }

  #enqueue(pod: KubeObject): void {
    if (this.#waiting.has(pod.metadata.uid)) return;
    const requests = podRequests(pod.spec ?? {});
    const { nodeSelector, affinity, tolerations } = pod.spec ?? {};
    const shape = canonicalJson([requests, nodeSelector, affinity, tolerations]);
    this.#waiting.set(pod.metadata.uid, { key: keyOf(pod.metadata), shape, requests });
    this.#wake();
  }

  #charge(uid: string, node: string, requests: Resources): void {
    this.#bound.set(uid, { node, requests });
    this.#used.set(node, addResources(this.#used.get(node) ?? {}, requests));
  }

  #free(uid: string, { node, requests }: BoundPod): void {
    this.#bound.delete(uid);
    this.#used.set(node, subtractResources(this.#used.get(node) ?? {}, requests));
    this.#wake();
  }

  #onNodeChange(before: KubeObject | null, after: KubeObject | null): void {
    if (after === null) this.#nodes.delete(before?.metadata.name ?? "");
    else this.#nodes.set(after.metadata.name, nodeState(after));
    this.#wake();
  }

  #wake(): void {
    if (this.#waiting.size > 0) this.#dueMs ??= this.#store.nowMs + ROUND_MS;
  }
}

/** True for a pod that the scheduler must place. */
function needsNode(pod: KubeObject): boolean {
  if (isTerminalPod(pod) || pod.metadata.deletionTimestamp !== undefined) return false;
  if (stringAt(pod.spec, "nodeName") !== undefined || arrayAt(pod.spec, "schedulingGates").length > 0) return false;
  return (stringAt(pod.spec, "schedulerName") ?? "default-scheduler") === "default-scheduler";
}

function nodeState(node: KubeObject): NodeState {
  const taints = arrayAt(node.spec, "taints").map((taint): Taint => {
    return {
      key: stringAt(taint, "key") ?? "",
      value: stringAt(taint, "value") ?? "",
      effect: stringAt(taint, "effect") ?? "",
    };
  });
  const facts: NodeFacts = {
    name: node.metadata.name,
    labels: node.metadata.labels ?? {},
    taints,
    unschedulable: node.spec?.["unschedulable"] === true,
  };
  return { facts, allocatable: readResources(objectAt(node.status, "allocatable")) };
}

function nodeReasons(spec: JsonObject, node: NodeFacts, requests: Resources, free: Resources): readonly string[] {
  const bare: NodeFacts = { ...node, taints: [], unschedulable: false };
  const tolerant = { tolerations: spec["tolerations"] };
  if (node.unschedulable && !nodeAllows(tolerant, { ...bare, unschedulable: true }))
    return ["node(s) were unschedulable"];
  const taint = node.taints.find((one) => !nodeAllows(tolerant, { ...bare, taints: [one] }));
  if (taint !== undefined) return [`node(s) had untolerated taint {${taint.key}: ${taint.value}}`];
  if (!nodeAllows(spec, bare)) return ["node(s) didn't match Pod's node affinity/selector"];
  return Object.entries(requests)
    .filter(([name, amount]) => amount > 0 && amount > (free[name] ?? 0))
    .map(([name]) => (name === "pods" ? "Too many pods" : `Insufficient ${name}`));
}
