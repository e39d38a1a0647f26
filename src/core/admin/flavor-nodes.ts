/**
 * Relates the flavors of a cluster to its nodes. A flavor whose label or resource is misspelt makes every gang wait, so
 * an admin hears of it at once.
 */
import { compareText } from "../../runtime/compare-text.ts";
import { hasLabels } from "../job/labels.ts";
import type { ClusterFlavor, NodeCapacity } from "../plan/model/snapshot.ts";
import { type NameHelp, nearestName } from "../pods/nearest-name.ts";

/** The nodes that carry the labels of a flavor, and how much of its resource they have, in thousandths. */
export type FlavorNodes = {
  readonly nodes: number;
  /** Of the schedulable ones. */
  readonly allocatable: number;
  readonly free: number;
};

export function flavorNodes({ resource, nodeLabels }: ClusterFlavor, nodes: readonly NodeCapacity[]): FlavorNodes {
  const own = nodes.filter(({ labels }) => hasLabels(labels, nodeLabels));
  const usable = own.filter(({ unschedulable }) => !unschedulable);
  const sum = (of: "allocatable" | "free") =>
    usable.reduce((total, node) => total + Math.max(0, node[of][resource] ?? 0), 0);
  return { nodes: own.length, allocatable: sum("allocatable"), free: sum("free") };
}

type LabelledNode = Pick<NodeCapacity, "labels" | "allocatable">;

/** Why no node of a cluster belongs to a flavor, with what was probably meant. Null: a node does. */
export function flavorProblem(
  flavor: ClusterFlavor,
  nodes: readonly LabelledNode[],
  help: NameHelp = nearestName,
): string | null {
  const { resource, nodeLabels } = flavor;
  const own = nodes.filter(({ labels }) => hasLabels(labels, nodeLabels));
  if (own.some((node) => has(node, resource))) return null;
  const labels = Object.entries(nodeLabels).map(([key, value]) => `${key}=${value}`);
  const withLabels = labels.length === 0 ? "no node" : `no node with label ${labels.join(" and ")}`;
  if (own.length > 0) return `${withLabels} has ${resource}${meantResource(resource, resourcesOf(own), help)}`;
  if (nodes.length === 0) return "the cluster has no nodes";
  return `no node carries label ${labels.join(" and ")}${meantLabel(flavor, nodes, help)}`;
}

/** The resource of `known` that was probably meant, as the end of a sentence. Empty: none is close. */
export function meantResource(resource: string, known: readonly string[], help: NameHelp): string {
  const meant = help(resource, known);
  return meant === null ? "" : `; did you mean ${meant}?`;
}

function resourcesOf(nodes: readonly LabelledNode[]): readonly string[] {
  return [...new Set(nodes.flatMap(({ allocatable }) => Object.keys(allocatable)))].sort(compareText);
}

function has({ allocatable }: LabelledNode, resource: string): boolean {
  return (allocatable[resource] ?? 0) > 0;
}

/** Values of a label that a message names. */
const VALUES_NAMED = 3;

/** The values that nodes with the resource have for the first label that no node carries, or a key that is close. */
function meantLabel({ resource, nodeLabels }: ClusterFlavor, nodes: readonly LabelledNode[], help: NameHelp): string {
  const wrong = Object.entries(nodeLabels).find(([key, value]) => !nodes.some(({ labels }) => labels[key] === value));
  if (wrong === undefined) return "";
  const [key] = wrong;
  const withResource = nodes.filter((node) => has(node, resource));
  const candidates = withResource.length > 0 ? withResource : nodes;
  const values = [...new Set(candidates.flatMap(({ labels }) => labels[key] ?? []))].sort(compareText);
  if (values.length > 0) {
    const named = values.slice(0, VALUES_NAMED).join(", ");
    return `; there is ${key}=${named}${values.length > VALUES_NAMED ? ", …" : ""}`;
  }
  const keys = new Set(candidates.flatMap(({ labels }) => Object.keys(labels)));
  const meant = help(key, [...keys].sort(compareText));
  return meant === null ? "" : `; did you mean the label ${meant}?`;
}
