import type { JsonObject } from "../../runtime/json.ts";
import { arrayAt, canonicalJson, objectAt, stringAt, stringMapAt } from "../../runtime/json.ts";
import { type NodeFacts, readyNode } from "../pods/node-match.ts";
import type { Resources } from "../pods/resources.ts";
import type { NodeCapacity } from "./snapshot.ts";

/** Nodes that are alike for every pod of the plan: the same relevant labels, taints, allocatable and free resources. */
export type Shape = {
  /** One of the nodes, as an example of all. */
  readonly node: NodeFacts;
  readonly allocatable: Resources;
  readonly free: Resources;
  readonly count: number;
};

/** The properties of nodes that the selectors of the plan's pods depend on. */
export type SelectorKeys = { readonly labels: ReadonlySet<string>; readonly byName: boolean };

/** The label keys in the node selectors and required node affinities of these pods, and whether one names a node. */
export function selectorKeys(podSpecs: Iterable<JsonObject>, demanded: Iterable<string>): SelectorKeys {
  const labels = new Set(demanded);
  let byName = false;
  for (const podSpec of podSpecs) {
    for (const key of Object.keys(stringMapAt(podSpec, "nodeSelector"))) labels.add(key);
    const required = objectAt(objectAt(podSpec, "affinity"), "nodeAffinity")[
      "requiredDuringSchedulingIgnoredDuringExecution"
    ];
    for (const term of arrayAt(required, "nodeSelectorTerms")) {
      byName ||= arrayAt(term, "matchFields").length > 0;
      for (const expression of arrayAt(term, "matchExpressions")) labels.add(stringAt(expression, "key") ?? "");
    }
  }
  return { labels, byName };
}

/** Groups nodes that are alike for these selectors. The cost of a fit grows with the number of shapes. */
export function shapesOf(nodes: readonly NodeCapacity[], keys: SelectorKeys): readonly Shape[] {
  const shapes = new Map<string, Shape>();
  const relevant = [...keys.labels];
  for (const node of nodes) {
    const { name, taints, unschedulable, allocatable, free } = node;
    const labels = relevant.map((key) => node.labels[key] ?? null);
    const key = canonicalJson([keys.byName ? name : null, labels, taints, unschedulable, allocatable, free]);
    const known = shapes.get(key);
    shapes.set(key, { node: known?.node ?? node, allocatable, free, count: (known?.count ?? 0) + 1 });
  }
  return [...shapes.values()];
}

/** The same nodes as if nothing ran on them and all were ready: the most that a gang could ever get. */
export function emptied(nodes: readonly NodeCapacity[]): readonly NodeCapacity[] {
  return nodes.map((node) => ({ ...readyNode(node), free: node.allocatable }));
}
