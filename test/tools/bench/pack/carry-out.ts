import {
  type CandidateNode,
  namedNodes,
  preferredNode,
  scoredRequests,
} from "../../../../src/adapters/simcluster/pods/score-nodes.ts";
import { OTHER_NODES_MAX } from "../../../../src/core/job/placement/placement.ts";
import { steeredTo } from "../../../../src/core/pods/build/steer-pod.ts";
import { nodeAllows } from "../../../../src/core/pods/node-match.ts";
import { addResources, fitsIn, type Resources, subtractResources } from "../../../../src/core/pods/resources.ts";

/** The planned node of a pod, and the other nodes that take it, the best ones first. */
export type PlannedNode = { readonly node: string; readonly others: readonly string[] };

/** Turns planned nodes into real ones. */
export type CarryOut = {
  /** Binds a pod, and returns its node. Null: no node takes it. */
  readonly bind: (requests: Resources, planned: PlannedNode) => string | null;
  /** A pod leaves its node. */
  readonly free: (node: string, requests: Resources) => void;
};

type RealNode = CandidateNode & { readonly used: Resources };

/** Nodes on which the simulated scheduler puts pods that were steered as those of jobs are. */
export class RealNodes implements CarryOut {
  readonly #nodes = new Map<string, RealNode>();

  constructor(nodes: readonly { readonly name: string; readonly resources: Resources }[]) {
    for (const { name, resources } of nodes) {
      const facts = { name, labels: {}, taints: [], unschedulable: false };
      this.#nodes.set(name, { facts, allocatable: resources, requested: {}, alike: 0, used: {} });
    }
  }

  bind(requests: Resources, { node, others }: PlannedNode): string | null {
    const alternatives = others.filter((other) => other !== node).slice(0, OTHER_NODES_MAX);
    const podSpec = steeredTo({}, { node, others: alternatives });
    const candidates = (namedNodes(podSpec) ?? [...this.#nodes.keys()]).flatMap((name) => {
      const found = this.#nodes.get(name);
      const takes = found !== undefined && nodeAllows(podSpec, found.facts);
      return takes && fitsIn(requests, subtractResources(found.allocatable, found.used)) ? [found] : [];
    });
    const bound = preferredNode(podSpec, candidates);
    if (bound === null) return null;
    this.#change(bound, requests, addResources);
    return bound.facts.name;
  }

  free(node: string, requests: Resources): void {
    const found = this.#nodes.get(node);
    if (found !== undefined) this.#change(found, requests, subtractResources);
  }

  #change(node: RealNode, requests: Resources, change: typeof addResources): void {
    const requested = change(node.requested, scoredRequests(requests));
    this.#nodes.set(node.facts.name, { ...node, requested, used: change(node.used, requests) });
  }
}
