import { hasLabels } from "../../job/labels.ts";
import type { NodeLabels } from "../model/node-labels.ts";
import type { ClusterFacts, ClusterFlavor, NodeCapacity } from "../model/snapshot.ts";
import type { Topology } from "../model/topology.ts";
import type { Columns, FitClass } from "./fit-classes.ts";
import { NodeDomains } from "./node-domains.ts";

/** The levels of a cluster, and of the flavors that have levels of their own. */
export type Topologies = {
  readonly topology: Topology;
  readonly flavors: readonly (Pick<ClusterFlavor, "resource" | "nodeLabels"> & { readonly topology: Topology })[];
};

const NONE: Topologies = { topology: [], flavors: [] };

/** The domains of pods on a flavor's nodes. Null: the flavor has no levels. */
type FlavorDomains = {
  readonly resource: string;
  readonly nodeLabels: NodeLabels;
  readonly size: number;
  readonly domains: NodeDomains | null;
};

/** The nodes by slot, which may change in place. */
type Slots = { readonly nodes: readonly (NodeCapacity | null)[]; readonly capacity: number };

/** The domains of a cluster's nodes: by its own levels, and by those of flavors that have their own. */
export class Levels {
  readonly #columns: Columns;
  #settings: Topologies = NONE;
  #ofCluster: NodeDomains | null = null;
  #ofFlavors: readonly FlavorDomains[] = [];
  #byFit = new WeakMap<FitClass, { readonly domains: NodeDomains | null }>();

  constructor(columns: Columns) {
    this.#columns = columns;
  }

  /** Sets the levels of a cluster. Null: it has none. */
  set(topologies: Topologies | null, { nodes, capacity }: Slots): void {
    this.#settings = topologies ?? NONE;
    const made = (topology: Topology) => (topology.length === 0 ? null : new NodeDomains(topology, nodes, capacity));
    this.#ofCluster = made(this.#settings.topology);
    const flavors = this.#settings.flavors.map(({ resource, nodeLabels, topology }) => {
      return { resource, nodeLabels, size: Object.keys(nodeLabels).length, domains: made(topology) };
    });
    // Several may match the pods of flavors for several resources: the most exact one counts.
    this.#ofFlavors = flavors.sort((a, b) => b.size - a.size);
    this.#byFit = new WeakMap();
  }

  /** The domains that order the nodes for pods of a class. Null: they have no levels. */
  of(fit: FitClass): NodeDomains | null {
    if (this.#ofFlavors.length === 0) return this.#ofCluster;
    const known = this.#byFit.get(fit);
    if (known !== undefined) return known.domains;
    const own = this.#ofFlavors.find(({ resource, nodeLabels }) => {
      return fit.columns.includes(this.#columns.of(resource)) && hasLabels(fit.rules.nodeLabels, nodeLabels);
    });
    const domains = own === undefined ? this.#ofCluster : own.domains;
    this.#byFit.set(fit, { domains });
    return domains;
  }

  setNode(slot: number, node: NodeCapacity | null): void {
    this.#ofCluster?.setNode(slot, node);
    for (const { domains } of this.#ofFlavors) domains?.setNode(slot, node);
  }

  grow(capacity: number): void {
    this.#ofCluster?.grow(capacity);
    for (const { domains } of this.#ofFlavors) domains?.grow(capacity);
  }
}

/** The levels in a cluster's record. Null: it has none. */
export function topologiesOf(facts: Pick<ClusterFacts, "topology" | "flavors"> | null): Topologies | null {
  if (facts === null) return null;
  const topology = facts.topology ?? [];
  const flavors = facts.flavors.flatMap(({ resource, nodeLabels, topology: own }) => {
    return own === undefined ? [] : [{ resource, nodeLabels, topology: own }];
  });
  return topology.length === 0 && flavors.every((flavor) => flavor.topology.length === 0)
    ? null
    : { topology, flavors };
}
