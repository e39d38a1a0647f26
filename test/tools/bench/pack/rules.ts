import { OTHER_NODES_MAX } from "../../../../src/core/job/placement/placement.ts";
import { FitClasses } from "../../../../src/core/plan/capacity/fit-classes.ts";
import { FreeCapacity } from "../../../../src/core/plan/capacity/free-capacity.ts";
import type { PodClass } from "../../../../src/core/plan/model/ask.ts";
import type { Topology } from "../../../../src/core/plan/model/topology.ts";
import { fitsIn, type Resources } from "../../../../src/core/pods/resources.ts";
import { type CarryOut, RealNodes } from "./carry-out.ts";
import { GPU } from "./trace.ts";
import type { PackGang, PackNode } from "./worlds.ts";

/** The node of each pod of a gang. */
export type Placed = { readonly gang: PackGang; readonly nodes: readonly string[] };

/** A cluster that places gangs by one rule: all pods of a gang, or none. */
export type Packer = {
  /** Null: not all pods find a node. */
  readonly place: (gang: PackGang) => Placed | null;
  readonly remove: (placed: Placed) => void;
};

export type RuleName = "spread" | "first fit" | "best fit" | "ours";

export const RULES: readonly RuleName[] = ["spread", "first fit", "best fit", "ours"];

const RACK = "example.com/rack";
const MODEL = "gpu";
const LEVELS: Topology = [{ name: "rack", label: RACK }];

export function packerOf(rule: RuleName, nodes: readonly PackNode[], random: () => number): Packer {
  switch (rule) {
    case "spread":
      return new ScoredNodes(nodes, leastAllocated, random);
    case "first fit":
      return new ScoredNodes(nodes, () => 0, null);
    case "best fit":
      return new PlannedNodes(nodes, []);
    case "ours":
      return new PlannedNodes(nodes, LEVELS);
  }
}

/** As `ours`, but each pod gets the node on which the simulated scheduler puts it. */
export function carriedOut(nodes: readonly PackNode[]): Packer {
  return new PlannedNodes(nodes, LEVELS, new RealNodes(nodes.map(({ name, resources }) => ({ name, resources }))));
}

/** Places gangs by the planner's own code. */
class PlannedNodes implements Packer {
  readonly #fits = new FitClasses();
  readonly #free = new FreeCapacity(this.#fits);
  readonly #racks: readonly string[];
  readonly #carryOut: CarryOut | null;

  constructor(nodes: readonly PackNode[], topology: Topology, carryOut: CarryOut | null = null) {
    this.#racks = [...new Set(nodes.flatMap(({ rack }) => rack ?? []))];
    this.#carryOut = carryOut;
    // A cluster whose nodes have no racks has no levels.
    this.#free.setTopology(this.#racks.length === 0 ? null : { topology, flavors: [] });
    for (const { name, model, rack, resources } of nodes) {
      const labels = { [MODEL]: model, ...(rack === null ? {} : { [RACK]: rack }) };
      const amounts = { allocatable: resources, free: resources };
      this.#free.setNode(name, { name, labels, taints: [], unschedulable: false, ...amounts });
    }
    this.#free.reset();
  }

  place(gang: PackGang): Placed | null {
    const rack = gang.needsRack ? this.#tightestRack(gang) : null;
    if (gang.needsRack && rack === null) return null;
    const fit = this.#fitOf(gang, rack);
    const { mark } = this.#free;
    if (this.#free.place(fit, gang.pods) < gang.pods) {
      this.#free.undo(mark);
      return null;
    }
    const planned = this.#free.placedAfter(mark).flatMap(({ slot, pods }) => {
      return Array<string>(pods).fill(this.#free.nodeAt(slot)?.name ?? "");
    });
    if (this.#carryOut === null) return { gang, nodes: planned };
    // The nodes that pods are on count, not those that were planned.
    this.#free.undo(mark);
    return this.#bind(gang, planned, this.#carryOut);
  }

  #bind(gang: PackGang, planned: readonly string[], carryOut: CarryOut): Placed | null {
    const fit = this.#fitOf(gang, null);
    const nodes: string[] = [];
    for (const node of planned) {
      const others = this.#free.firstFor(fit, 1 + OTHER_NODES_MAX);
      const bound = carryOut.bind(gang.requests, { node, others });
      if (bound === null) {
        this.remove({ gang, nodes });
        return null;
      }
      this.#free.shift(bound, fit, 1);
      nodes.push(bound);
    }
    return { gang, nodes };
  }

  remove({ gang, nodes }: Placed): void {
    const fit = this.#fitOf(gang, null);
    for (const node of nodes) {
      this.#free.shift(node, fit, -1);
      this.#carryOut?.free(node, gang.requests);
    }
  }

  /** Of the racks that take the gang, the one that takes the fewest pods. */
  #tightestRack(gang: PackGang): string | null {
    let best: { readonly rack: string; readonly pods: number } | null = null;
    for (const rack of this.#racks) {
      const pods = this.#free.fitting(this.#fitOf(gang, rack), Number.POSITIVE_INFINITY);
      if (pods >= gang.pods && (best === null || pods < best.pods)) best = { rack, pods };
    }
    return best?.rack ?? null;
  }

  #fitOf({ requests, models }: PackGang, rack: string | null) {
    const terms = [{ matchExpressions: [{ key: MODEL, operator: "In", values: [...models] }] }];
    const required = { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: terms } };
    const scheduling = {
      ...(rack === null ? {} : { nodeSelector: { [RACK]: rack } }),
      ...(models.length === 0 ? {} : { affinity: { nodeAffinity: required } }),
    };
    const podClass: PodClass = { requests, scheduling };
    return this.#fits.of(podClass, {});
  }
}

type NodeNow = PackNode & { readonly free: Record<string, number>; score: number };

/** Places each pod on the node with the highest score. */
class ScoredNodes implements Packer {
  readonly #nodes: readonly NodeNow[];
  readonly #byName: ReadonlyMap<string, NodeNow>;
  readonly #racks: ReadonlyMap<string | null, readonly NodeNow[]>;
  readonly #scoreOf: (node: Omit<NodeNow, "score">) => number;
  readonly #drawn: (() => number) | null;

  /** `drawn`: equal nodes are drawn. Null: the first one is taken. */
  constructor(
    nodes: readonly PackNode[],
    scoreOf: (node: Omit<NodeNow, "score">) => number,
    drawn: (() => number) | null,
  ) {
    this.#scoreOf = scoreOf;
    this.#drawn = drawn;
    this.#nodes = nodes.map((node) => {
      const now = { ...node, free: { ...node.resources } };
      return { ...now, score: scoreOf(now) };
    });
    this.#byName = new Map(this.#nodes.map((node) => [node.name, node]));
    this.#racks = Map.groupBy(this.#nodes, ({ rack }) => rack);
  }

  place(gang: PackGang): Placed | null {
    for (const nodes of gang.needsRack ? this.#racks.values() : [this.#nodes]) {
      const used = this.#placeOn(nodes, gang);
      if (used.length === gang.pods) return { gang, nodes: used };
      this.remove({ gang, nodes: used });
    }
    return null;
  }

  remove({ gang, nodes }: Placed): void {
    for (const name of nodes) this.#move(this.#byName.get(name), gang.requests, 1);
  }

  #placeOn(nodes: readonly NodeNow[], gang: PackGang): readonly string[] {
    const used: string[] = [];
    const takers = gang.models.length === 0 ? nodes : nodes.filter(({ model }) => gang.models.includes(model));
    for (let pod = 0; pod < gang.pods; pod++) {
      const best = this.#best(takers, gang);
      if (best === undefined) break;
      this.#move(best, gang.requests, -1);
      used.push(best.name);
    }
    return used;
  }

  #best(nodes: readonly NodeNow[], { gpus, requests }: PackGang): NodeNow | undefined {
    let best: NodeNow | undefined;
    let equal = 0;
    for (const node of nodes) {
      if ((node.free[GPU] ?? 0) < gpus * 1000) continue;
      if (best !== undefined && (node.score < best.score || (this.#drawn === null && node.score === best.score)))
        continue;
      if (!fitsIn(requests, node.free)) continue;
      equal = best !== undefined && node.score === best.score ? equal + 1 : 1;
      // Each of the equal ones so far is the best with the same chance.
      if (equal === 1 || (this.#drawn !== null && this.#drawn() * equal < 1)) best = node;
    }
    return best;
  }

  #move(node: NodeNow | undefined, requests: Resources, sign: 1 | -1): void {
    if (node === undefined) return;
    for (const [name, amount] of Object.entries(requests)) node.free[name] = (node.free[name] ?? 0) + sign * amount;
    node.score = this.#scoreOf(node);
  }
}

/**
 * The score by which kube-scheduler spreads pods over nodes, as an integer: equal ones are drawn. Source: Kubernetes'
 * plugin NodeResourcesFit with its default strategy LeastAllocated.
 */
function leastAllocated({ free, resources }: Omit<NodeNow, "score">): number {
  const part = (name: string) => Math.floor((100 * (free[name] ?? 0)) / (resources[name] ?? 1));
  return Math.floor((part("cpu") + part("memory")) / 2);
}
