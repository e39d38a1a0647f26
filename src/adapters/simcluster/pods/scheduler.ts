/** Serves users who try placement out: binds pods to nodes with room, and says why a pod fits on none. */
import { hasLabels } from "../../../core/job/labels.ts";
import type { NodeFacts, Taint } from "../../../core/pods/node-match.ts";
import { nodeAllows } from "../../../core/pods/node-match.ts";
import type { Resources } from "../../../core/pods/resources.ts";
import { addResources, fitsIn, podRequests, readResources, subtractResources } from "../../../core/pods/resources.ts";
import type { JsonObject } from "../../../runtime/json.ts";
import { arrayAt, canonicalJson, objectAt, stringAt, stringMapAt } from "../../../runtime/json.ts";
import type { KubeObject } from "../objects/kube-object.ts";
import { isTerminalPod, keyOf } from "../objects/kube-object.ts";
import type { ObjectStore } from "../objects/object-store.ts";
import { conditionOf, withConditions } from "./pod-status.ts";
import { type CandidateNode, namedNodes, preferredNode, scoredRequests } from "./score-nodes.ts";

/** Collects changes for one round, because a round looks at every waiting pod. */
const ROUND_MS = 10;
/** The shortest time between two messages of a waiting pod. Each pod that ends would change all of them. */
const MESSAGE_MS = 5000;

type NodeState = { readonly facts: NodeFacts; readonly allocatable: Resources };
type WaitingPod = { readonly key: string; readonly shape: string; readonly requests: Resources };
type Labels = Readonly<Record<string, string>>;
type BoundPod = {
  readonly node: string;
  readonly requests: Resources;
  readonly namespace: string;
  readonly labels: Labels;
};
/** What the pods of a node request, exactly and as scores count it. */
type NodeUse = { readonly requests: Resources; readonly scored: Resources };

const NO_USE: NodeUse = { requests: {}, scored: {} };

/**
 * Plays kube-scheduler: binds pods to nodes, oldest first, each to the node with the best score of those that allow it.
 * Users of `gangway up` see the same places of pods, and the same reasons for a waiting one, as on a real cluster.
 */
export class Scheduler {
  readonly #store: ObjectStore;
  readonly #nodes = new Map<string, NodeState>();
  readonly #bound = new Map<string, BoundPod>();
  readonly #used = new Map<string, NodeUse>();
  readonly #waiting = new Map<string, WaitingPod>();
  readonly #messageMs = new Map<string, number>();
  /** The selectors of Services by their uids. */
  readonly #selectors = new Map<string, { readonly namespace: string; readonly selector: Labels }>();
  #dueMs: number | null = null;

  constructor(store: ObjectStore) {
    this.#store = store;
    store.observe((resource, before, after) => {
      if (resource === "pods") this.#onPodChange(before, after);
      else if (resource === "nodes") this.#onNodeChange(before, after);
      else if (resource === "services") this.#onServiceChange(before, after);
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
    const { requests: used } = this.#useOf(bound.node);
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
    const node = this.#chosenFor(pod, waiting.requests);
    if (node === null) return this.#explain(pod, waiting.requests);
    const status = withConditions(pod.status ?? {}, { PodScheduled: { status: "True" } }, nowMs);
    this.#store.put("pods", { ...pod, spec: { ...pod.spec, nodeName: node }, status }, null);
    return null;
  }

  /** The node that a pod gets. Null: none takes it. */
  #chosenFor(pod: KubeObject, requests: Resources): string | null {
    const spec = pod.spec ?? {};
    const names = namedNodes(spec) ?? this.#nodes.keys();
    const alike = this.#alikeByNode(pod);
    const candidates: CandidateNode[] = [];
    for (const name of names) {
      const node = this.#nodes.get(name);
      if (node === undefined || !nodeAllows(spec, node.facts)) continue;
      const { requests: used, scored } = this.#useOf(name);
      if (!fitsIn(requests, subtractResources(node.allocatable, used))) continue;
      candidates.push({ ...node, requested: scored, alike: alike.get(name) ?? 0 });
    }
    return preferredNode(spec, candidates)?.facts.name ?? null;
  }

  /** By node, how many pods some Service selects that selects this pod too. */
  #alikeByNode({ metadata, spec }: KubeObject): ReadonlyMap<string, number> {
    const counts = new Map<string, number>();
    // A constraint of its own turns the spread by Services off.
    if (arrayAt(spec, "topologySpreadConstraints").length > 0) return counts;
    const { namespace = "", labels = {} } = metadata;
    const selectors = [...this.#selectors.values()].filter((one) => one.namespace === namespace);
    const selecting = selectors.filter(({ selector }) => hasLabels(labels, selector));
    if (selecting.length === 0) return counts;
    // kube-scheduler joins the selectors of all Services that select the pod.
    const joined = Object.assign({}, ...selecting.map(({ selector }) => selector));
    for (const bound of this.#bound.values()) {
      if (bound.namespace !== namespace || !hasLabels(bound.labels, joined)) continue;
      counts.set(bound.node, (counts.get(bound.node) ?? 0) + 1);
    }
    return counts;
  }

  #useOf(node: string): NodeUse {
    return this.#used.get(node) ?? NO_USE;
  }

  /** Explains why no node fits, as kube-scheduler does: a node's reason is the first plugin that refuses it. */
  #explain(pod: KubeObject, requests: Resources): string {
    const total = this.#nodes.size;
    if (total === 0) return "no nodes available to schedule pods";
    const counts = new Map<string, number>();
    for (const [name, node] of this.#nodes) {
      const free = subtractResources(node.allocatable, this.#useOf(name).requests);
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
    if (after !== null && node !== undefined && wasBound === undefined) this.#charge(after, node);
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

  #charge({ metadata, spec }: KubeObject, node: string): void {
    const { uid, namespace = "", labels = {} } = metadata;
    const requests = podRequests(spec ?? {});
    this.#bound.set(uid, { node, requests, namespace, labels });
    this.#changeUse(node, requests, addResources);
  }

  #free(uid: string, { node, requests }: BoundPod): void {
    this.#bound.delete(uid);
    this.#changeUse(node, requests, subtractResources);
    this.#wake();
  }

  #changeUse(node: string, requests: Resources, change: typeof addResources): void {
    const used = this.#useOf(node);
    const scored = change(used.scored, scoredRequests(requests));
    this.#used.set(node, { requests: change(used.requests, requests), scored });
  }

  #onServiceChange(before: KubeObject | null, after: KubeObject | null): void {
    const { uid = "", namespace = "" } = (after ?? before)?.metadata ?? {};
    const selector = stringMapAt(after?.spec, "selector");
    if (after === null || Object.keys(selector).length === 0) this.#selectors.delete(uid);
    else this.#selectors.set(uid, { namespace, selector });
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
