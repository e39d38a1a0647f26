import { compareText } from "../../runtime/compare-text.ts";
import { nodeAllows } from "../pods/node-match.ts";
import type { Resources } from "../pods/resources.ts";
import type { MemberGroup } from "./gang.ts";
import type { Shape } from "./shapes.ts";

export type NodeLabels = Readonly<Record<string, string>>;

/** How many pods were placed, and the nodes with the room that is left then. */
export type PlacedPods = { readonly placed: number; readonly left: readonly Shape[] };

/**
 * Places as many pods as it can, best fit decreasing: the groups with the largest requests first, each pod on the node
 * that then has least room left. Nodes must have `nodeLabels` in addition to the requirements of the pods. The same
 * inputs give the same placement.
 */
export function place(shapes: readonly Shape[], groups: readonly MemberGroup[], nodeLabels: NodeLabels): PlacedPods {
  let left = shapes;
  let placed = 0;
  for (const group of [...groups].sort(compareDemand)) {
    const step = placeGroup(left, group, nodeLabels);
    left = step.left;
    placed += step.placed;
  }
  return { placed, left };
}

export function carries(labels: NodeLabels, required: NodeLabels): boolean {
  return Object.entries(required).every(([key, value]) => labels[key] === value);
}

/** True if a node of this shape takes one more pod of the group. */
export function takesPod(shape: Shape, group: MemberGroup, nodeLabels: NodeLabels): boolean {
  return (
    carries(shape.node.labels, nodeLabels) &&
    podsPerNode(group.requests, shape.free, 1) === 1 &&
    nodeAllows(group.scheduling, shape.node)
  );
}

/** Splits shapes into `open` ones, which take one more pod of the group, tightest first; and the `closed` others. */
export function nodesFor(shapes: readonly Shape[], group: MemberGroup, nodeLabels: NodeLabels) {
  const open = shapes.filter((shape) => takesPod(shape, group, nodeLabels));
  const openSet = new Set(open);
  return {
    open: open.sort(compareTightness(group.requests)),
    closed: shapes.filter((shape) => !openSet.has(shape)),
  };
}

/**
 * Fills nodes, one shape after another, tightest first. One pass is enough: a filled node takes no more of the group.
 */
export function placeGroup(shapes: readonly Shape[], group: MemberGroup, nodeLabels: NodeLabels): PlacedPods {
  const { open, closed } = nodesFor(shapes, group, nodeLabels);
  const left: Shape[] = [...closed];
  let waiting = group.count;
  for (const shape of open) {
    const { taken, parts } = fill(shape, group.requests, waiting);
    left.push(...parts);
    waiting -= taken;
  }
  return { placed: group.count - waiting, left };
}

/** Puts up to `waiting` pods on the nodes of one shape, node after node, and returns the shapes of these nodes then. */
export function fill(shape: Shape, requests: Resources, waiting: number): { taken: number; parts: readonly Shape[] } {
  const perNode = podsPerNode(requests, shape.free, waiting);
  if (perNode === 0) return { taken: 0, parts: [shape] };
  const full = Math.min(shape.count, Math.floor(waiting / perNode));
  const rest = full < shape.count ? waiting - full * perNode : 0;
  const parts = [
    shrunk(shape, requests, { nodes: full, pods: perNode }),
    shrunk(shape, requests, { nodes: rest > 0 ? 1 : 0, pods: rest }),
    { ...shape, count: shape.count - full - (rest > 0 ? 1 : 0) },
  ];
  return { taken: full * perNode + rest, parts: parts.filter((part) => part.count > 0) };
}

/** How many pods with these requests fit on one node, at most `max`. */
function podsPerNode(requests: Resources, free: Resources, max: number): number {
  return Object.entries(requests).reduce(
    (least, [name, amount]) =>
      amount <= 0 ? least : Math.min(least, Math.max(0, Math.floor((free[name] ?? 0) / amount))),
    max,
  );
}

function shrunk(shape: Shape, requests: Resources, by: { readonly nodes: number; readonly pods: number }): Shape {
  const free: Record<string, number> = { ...shape.free };
  for (const [name, amount] of Object.entries(requests)) free[name] = (free[name] ?? 0) - amount * by.pods;
  return { ...shape, free, count: by.nodes };
}

/** Devices and the like have a domain in their name: `nvidia.com/gpu`. */
export function isExtended(resource: string): boolean {
  return resource.includes("/");
}

/** Scarce resources first: extended resources, processors, memory, then the others by name. */
export function compareResources(a: string, b: string): number {
  const rank = (name: string) => (isExtended(name) ? 0 : name === "cpu" ? 1 : name === "memory" ? 2 : 3);
  return rank(a) - rank(b) || compareText(a, b);
}

type Demand = Pick<MemberGroup, "requests" | "role">;

/** Larger requests first, by the scarcest resource in which two groups differ. */
export function compareDemand(a: Demand, b: Demand): number {
  const names = new Set([...Object.keys(a.requests), ...Object.keys(b.requests)]);
  for (const name of [...names].sort(compareResources)) {
    const difference = (b.requests[name] ?? 0) - (a.requests[name] ?? 0);
    if (difference !== 0) return difference;
  }
  return compareResources(a.role, b.role);
}

/** First nodes without free devices that the pod does not request, then those with the least free of its resources. */
function compareTightness(requests: Resources): (a: Shape, b: Shape) => number {
  const requested = Object.keys(requests)
    .filter((name) => (requests[name] ?? 0) > 0)
    .sort(compareResources);
  const wasted = (shape: Shape) =>
    Object.entries(shape.free).reduce(
      (sum, [name, free]) => (isExtended(name) && !requested.includes(name) ? sum + Math.max(0, free) : sum),
      0,
    );
  return (a, b) => {
    const difference = wasted(a) - wasted(b);
    if (difference !== 0) return difference;
    const name = requested.find((resource) => (a.free[resource] ?? 0) !== (b.free[resource] ?? 0));
    if (name !== undefined) return (a.free[name] ?? 0) - (b.free[name] ?? 0);
    return compareText(a.node.name, b.node.name);
  };
}
