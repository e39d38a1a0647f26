/** Whether a node takes pods, and how much it has of what counts as GPUs. */
import { compareText } from "../../../runtime/compare-text.ts";
import { hasLabels } from "../../job/labels.ts";
import type { ClusterFlavor, NodeCapacity, NodeTrouble } from "../../plan/model/snapshot.ts";

/** `READY`: the node is in no other state. */
export type NodeState = "READY" | "NOT_READY" | "CORDONED" | "LEAVING";

const TAINTS: Readonly<Record<string, NodeTrouble>> = {
  "node.kubernetes.io/unschedulable": { cordoned: true },
  "node.kubernetes.io/not-ready": { notReady: { reason: "NotReady", message: "" } },
  "node.kubernetes.io/unreachable": { notReady: { reason: "Unreachable", message: "" } },
};

/** The facts of a node that say whether it takes pods. */
export type StandingFacts = Pick<NodeCapacity, "taints" | "unschedulable" | "trouble">;

/**
 * Why a node takes no pods; without members if it does. An older version recorded only that, and Kubernetes puts a
 * taint on the node that says why.
 */
export function troubleOf({ unschedulable, trouble, taints }: StandingFacts): NodeTrouble {
  if (trouble !== undefined || !unschedulable) return trouble ?? {};
  const found: NodeTrouble = Object.assign({}, ...taints.map(({ key }) => TAINTS[key] ?? {}));
  return Object.keys(found).length > 0 ? found : { notReady: { reason: "", message: "" } };
}

export function statesOf(trouble: NodeTrouble): readonly NodeState[] {
  const states: NodeState[] = [];
  if (trouble.notReady !== undefined) states.push("NOT_READY");
  if (trouble.cordoned === true) states.push("CORDONED");
  if (trouble.leaving === true) states.push("LEAVING");
  return states.length === 0 ? ["READY"] : states;
}

/** Whole amounts of one resource. `held`: what all pods on the node request. */
export type NodeGpus = {
  readonly resource: string;
  readonly allocatable: number;
  readonly held: number;
  readonly free: number;
};

/** A resource with such a name counts as GPUs also where no flavor names it. */
const GPU_NAME = /\/gpu$/;

/** What a node has of the resources that count as GPUs, ordered by name. */
export function gpusOf({ allocatable, free }: NodeCapacity, flavors: readonly ClusterFlavor[]): readonly NodeGpus[] {
  return Object.keys(allocatable)
    .filter((resource) => isGpu(resource, flavors))
    .sort(compareText)
    .map((resource) => {
      const [all, left] = [allocatable[resource] ?? 0, free[resource] ?? 0];
      return { resource, allocatable: whole(all), held: whole(all - left), free: whole(left) };
    });
}

/** How many GPUs the pods of a class request, in the resources that count as such. */
export function gpusRequested(requests: Readonly<Record<string, number>>, flavors: readonly ClusterFlavor[]): number {
  const amounts = Object.entries(requests).filter(([resource]) => isGpu(resource, flavors));
  return whole(amounts.reduce((sum, [, amount]) => sum + amount, 0));
}

function isGpu(resource: string, flavors: readonly ClusterFlavor[]): boolean {
  return GPU_NAME.test(resource) || flavors.some((flavor) => flavor.resource === resource);
}

/** Thousandths as a whole number that a page's key and the API can have. */
function whole(milli: number): number {
  return Math.min(Number.MAX_SAFE_INTEGER, Math.max(0, Math.floor(milli / 1000)));
}

/** The names of the flavors that a node has, in order. */
export function flavorsOf({ labels, allocatable }: NodeCapacity, flavors: readonly ClusterFlavor[]): readonly string[] {
  return flavors
    .filter(({ resource, nodeLabels }) => (allocatable[resource] ?? 0) > 0 && hasLabels(labels, nodeLabels))
    .map(({ name }) => name)
    .sort(compareText);
}

export function sumOf(gpus: readonly NodeGpus[], of: "allocatable" | "held" | "free"): number {
  return Math.min(
    Number.MAX_SAFE_INTEGER,
    gpus.reduce((sum, one) => sum + one[of], 0),
  );
}
