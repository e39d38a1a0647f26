/**
 * Names what keeps a gang's pod off the nodes of a cluster. A gang's owner needs the one thing to change: the memory
 * that is missing or the taint, not the GPUs that are free.
 */
import { invariant } from "../../runtime/assert.ts";
import { canonicalJson } from "../../runtime/json.ts";
import { missingLabels, type NodeObstacle, nodeAllows, nodeObstacles, readyNode } from "../pods/node-match.ts";
import type { Resources } from "../pods/resources.ts";
import { compareDemand, compareResources, type NodeLabels, placeGroup, takesPod } from "./fit.ts";
import { mergeAlike } from "./fit-all.ts";
import type { MemberGroup } from "./gang.ts";
import type { Shape } from "./shapes.ts";

/** One thing that keeps a pod off a node. Amounts are in thousandths of the resource's unit. */
export type PodObstacle =
  | {
      readonly kind: "resource";
      readonly resource: string;
      readonly need: number;
      /** The part of `allocatable` that is free for the pod. */
      readonly available: number;
      readonly allocatable: number;
    }
  | (Extract<NodeObstacle, { readonly kind: "label" }> & {
      /** The flavor whose nodes carry the label. Omitted: the pod's own node selector names it. */
      readonly flavor?: string;
    })
  | Exclude<NodeObstacle, { readonly kind: "label" }>;

/** A pod of a gang that no node of a cluster takes, and the node that is nearest to taking it. */
export type BlockedPod = {
  /** The replica type of the pod. */
  readonly role: string;
  /** How many pods like it do find a node. */
  readonly placed: number;
  /** True: no node could take such a pod even if the cluster were empty. */
  readonly never: boolean;
  /** The node with the fewest obstacles. Null: the cluster has no node. */
  readonly node: string | null;
  /** How many nodes have just these obstacles. */
  readonly nodes: number;
  readonly obstacles: readonly PodObstacle[];
};

/** The labels that a choice of flavors requires of a cluster's nodes, and the flavor that each label comes from. */
export type FlavorLabels = {
  readonly nodeLabels: NodeLabels;
  readonly flavorOf: Readonly<Record<string, string>>;
};

/** The nodes of a cluster: with the room that they have now, and as if nothing ran on them. */
type Nodes = { readonly shapes: readonly Shape[]; readonly empty: readonly Shape[] };

/**
 * The first pod of a gang that finds no node, if `place` has not placed all. A pod that no node could ever take comes
 * before one that only finds no room. For the latter, only nodes count that could take it if they were empty.
 */
export function blockedPod(nodes: Nodes, gang: readonly MemberGroup[], flavors: FlavorLabels): BlockedPod {
  const groups = mergeAlike(gang).sort(compareDemand);
  const takes = (group: MemberGroup) => (shape: Shape) => takesPod(emptyShape(shape), group, flavors.nodeLabels);
  const never = groups.find((group) => !nodes.empty.some(takes(group)));
  if (never !== undefined) {
    return { role: never.role, placed: 0, never: true, ...nearest(nodes.empty, { group: never, flavors }) };
  }
  let left = nodes.shapes;
  for (const group of groups) {
    const step = placeGroup(left, group, flavors.nodeLabels);
    if (step.placed < group.count) {
      const found = nearest(step.left, { group, flavors, counts: takes(group) });
      return { role: group.role, placed: step.placed, never: false, ...found };
    }
    left = step.left;
  }
  invariant(false, "a gang that was not placed has a pod without a node");
}

function emptyShape(shape: Shape): Shape {
  return { ...shape, node: readyNode(shape.node), free: shape.allocatable };
}

/** The node that has the fewest obstacles, and of those the one that lacks the smallest parts of its resources. */
function nearest(
  shapes: readonly Shape[],
  pod: {
    readonly group: MemberGroup;
    readonly flavors: FlavorLabels;
    /** Omitted: every node counts. */
    readonly counts?: (shape: Shape) => boolean;
  },
): Pick<BlockedPod, "node" | "nodes" | "obstacles"> {
  const { group, flavors, counts = () => true } = pod;
  const looked = shapes.map((shape) => {
    const obstacles = obstaclesOf(shape, group, flavors);
    return { shape, obstacles, size: sizeOf(obstacles) };
  });
  type Looked = (typeof looked)[number];
  const isNearer = (one: Looked, other: Looked) =>
    (one.obstacles.length - other.obstacles.length || one.size - other.size) < 0;
  let best: Looked | null = null;
  for (const one of looked) if ((best === null || isNearer(one, best)) && counts(one.shape)) best = one;
  if (best === null) return { node: null, nodes: 0, obstacles: [] };
  const { obstacles, size, shape } = best;
  const key = canonicalJson(obstacles);
  const alike = looked.filter((one) => one.size === size && canonicalJson(one.obstacles) === key && counts(one.shape));
  return { node: shape.node.name, nodes: alike.reduce((sum, one) => sum + one.shape.count, 0), obstacles };
}

/** Everything that keeps one more pod of the group off a node of this shape. */
function obstaclesOf(
  shape: Shape,
  { scheduling, requests }: MemberGroup,
  flavors: FlavorLabels,
): readonly PodObstacle[] {
  // A label that the pod selects and a flavor requires is named once.
  const isOwn = (rule: NodeObstacle) => rule.kind !== "label" || flavors.nodeLabels[rule.key] !== rule.value;
  // Most nodes have no obstacle but resources.
  const ofPod = nodeAllows(scheduling, shape.node) ? [] : nodeObstacles(scheduling, shape.node).filter(isOwn);
  return [...lackingResources(shape, requests), ...missingFlavorLabels(shape, flavors), ...ofPod];
}

/** The scarcest resource first. */
function lackingResources({ free, allocatable }: Shape, requests: Resources): readonly PodObstacle[] {
  const lacking: Extract<PodObstacle, { readonly kind: "resource" }>[] = [];
  for (const resource in requests) {
    const need = requests[resource] ?? 0;
    const available = Math.max(0, free[resource] ?? 0);
    if (need <= available) continue;
    lacking.push({ kind: "resource", resource, need, available, allocatable: allocatable[resource] ?? 0 });
  }
  return lacking.sort((a, b) => compareResources(a.resource, b.resource));
}

function missingFlavorLabels({ node }: Shape, { nodeLabels, flavorOf }: FlavorLabels): readonly PodObstacle[] {
  return missingLabels(nodeLabels, node.labels).map((label): PodObstacle => {
    const flavor = flavorOf[label.key];
    return flavor === undefined ? label : { ...label, flavor };
  });
}

/** A resource counts as the part of the request that is missing, anything else as 1. */
function sizeOf(obstacles: readonly PodObstacle[]): number {
  return obstacles.reduce((sum, one) => sum + (one.kind === "resource" ? (one.need - one.available) / one.need : 1), 0);
}
