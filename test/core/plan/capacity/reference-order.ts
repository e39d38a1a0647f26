/** The order of nodes for a pod, by brute force from the nodes alone: what `FreeCapacity.place` must equal. */
import type { Topology } from "../../../../src/core/plan/model/topology.ts";

export const GPU = "nvidia.com/gpu";
export const NIC = "rdma/hca";

export type PlainNode = {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly unschedulable: boolean;
  readonly free: Record<string, number>;
};

export type PlainPod = {
  readonly requests: Readonly<Record<string, number>>;
  readonly selector: Readonly<Record<string, string>>;
};

/** The devices first, by name, then the other resources in the order of their scarcity. */
const SCARCEST_FIRST = [GPU, NIC, "cpu", "memory"];
const DEVICES = [GPU, NIC];

/**
 * Places pods one by one, and returns the node of each; fewer than `count` if the others find none. Pods that all fit
 * one node take one, in a cluster with levels.
 */
export function placeByBruteForce(
  nodes: readonly PlainNode[],
  { pod, count }: { readonly pod: PlainPod; readonly count: number },
  topology: Topology | null,
): readonly string[] {
  const whole = nodes.filter((node) => podsOn(node, pod) >= count);
  const used: string[] = [];
  while (used.length < count) {
    const only = topology !== null && whole.length > 0 && used.length === 0 ? whole : nodes;
    const best = only
      .filter((node) => podsOn(node, pod) > 0)
      .sort((a, b) => compareKeys(keyOf(a, pod, nodes, topology), keyOf(b, pod, nodes, topology)))[0];
    if (best === undefined) break;
    const takes = only === whole ? count : 1;
    for (const [resource, amount] of Object.entries(pod.requests)) {
      best.free[resource] = (best.free[resource] ?? 0) - takes * amount;
    }
    for (let placed = 0; placed < takes; placed++) used.push(best.name);
  }
  return used;
}

function podsOn(node: PlainNode, { requests, selector }: PlainPod): number {
  if (node.unschedulable || Object.entries(selector).some(([key, value]) => node.labels[key] !== value)) return 0;
  const each = Object.entries(requests).map(([resource, amount]) => Math.floor((node.free[resource] ?? 0) / amount));
  return Math.max(0, Math.min(...each));
}

type Key = readonly (number | string)[];

function keyOf(node: PlainNode, pod: PlainPod, nodes: readonly PlainNode[], topology: Topology | null): Key {
  const wasted = sumOf(
    [node],
    DEVICES.filter((device) => pod.requests[device] === undefined),
  );
  const own = DEVICES.filter((device) => pod.requests[device] !== undefined);
  // A pod without devices looks at all devices together.
  const counted = own.length > 0 ? own.map((device) => [device]) : [DEVICES];
  const domains = (topology ?? []).flatMap((_, level) => {
    const inside = domainOf(node, nodes, (topology ?? []).slice(0, level + 1));
    return counted.map((devices) => sumOf(inside, devices));
  });
  const amounts = SCARCEST_FIRST.filter((one) => pod.requests[one] !== undefined).map((one) => node.free[one] ?? 0);
  return [wasted, ...domains, ...amounts, node.name];
}

/** The schedulable nodes with the same path of values. A node that lacks one of the labels is alone. */
function domainOf(node: PlainNode, nodes: readonly PlainNode[], levels: Topology): readonly PlainNode[] {
  if (levels.some(({ label }) => node.labels[label] === undefined)) return [node];
  const same = (other: PlainNode) => levels.every(({ label }) => other.labels[label] === node.labels[label]);
  return nodes.filter((other) => same(other) && !other.unschedulable);
}

function sumOf(nodes: readonly PlainNode[], devices: readonly string[]): number {
  return nodes.reduce((sum, { free }) => {
    return sum + devices.reduce((part, device) => part + Math.max(0, free[device] ?? 0), 0);
  }, 0);
}

function compareKeys(a: Key, b: Key): number {
  for (const [at, value] of a.entries()) {
    const other = b[at] as number | string;
    if (value !== other) return value < other ? -1 : 1;
  }
  return 0;
}
