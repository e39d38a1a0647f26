import { ClusterState } from "../../../../src/core/plan/capacity/cluster-state.ts";
import { FitClasses } from "../../../../src/core/plan/capacity/fit-classes.ts";
import { placeWished } from "../../../../src/core/plan/domains/place-gang.ts";
import { wishIn } from "../../../../src/core/plan/domains/wish.ts";
import { podClassOf } from "../../../../src/core/plan/model/ask.ts";
import type { NodeCapacity } from "../../../../src/core/plan/model/snapshot.ts";
import { HOSTNAME_LABEL } from "../../../../src/core/plan/model/topology.ts";
import type { JsonObject } from "../../../../src/runtime/json.ts";

type Amounts = Readonly<Record<string, number>>;

type PlaceCase = {
  readonly input: {
    readonly levels: readonly string[];
    readonly nodeLabels: Readonly<Record<string, string>>;
    readonly nodes: readonly {
      readonly name: string;
      readonly labels: Readonly<Record<string, string>>;
      readonly allocatable: Amounts;
      readonly ready: boolean;
      readonly unschedulable?: boolean;
      readonly taints?: readonly { readonly key: string; readonly value?: string; readonly effect: string }[];
    }[];
    readonly otherPods: readonly {
      readonly node: string | null;
      readonly requests: Amounts;
      readonly phase?: string;
    }[];
    readonly podSets: readonly {
      readonly name: string;
      readonly count: number;
      readonly requests: Amounts;
      readonly nodeSelector?: Readonly<Record<string, string>>;
      readonly tolerations?: readonly JsonObject[];
      readonly topology: { readonly required?: string; readonly preferred?: string } | null;
    }[];
  };
};

/** Domains for the pods of each pod set in turn, each beside those before it. The first failure ends it. */
export function runPlace({ input }: PlaceCase): object {
  const { levels, nodeLabels, podSets } = input;
  const cluster = new ClusterState("all", new FitClasses());
  const topology = levels.map((label) => ({ name: label, label }));
  cluster.free.setTopology({ topology, flavors: [] });
  for (const node of nodesOf(input)) cluster.free.setNode(node.name, node);
  cluster.free.reset();
  const placed: object[] = [];
  // A host is named by its own value alone.
  const byHost = levels.at(-1) === HOSTNAME_LABEL;
  for (const { name, count, requests, topology: asked, ...scheduling } of podSets) {
    const { mark, fits } = cluster.free;
    const podClass = { ...podClassOf(scheduling as JsonObject), requests: thousandths({ ...requests, pods: 1 }) };
    const fit = fits.of(podClass, { cpu: nodeLabels });
    const wish = wishIn(topology, asked ?? {});
    if (!placeWished(cluster.free, { fit, count, wish }))
      return { podSets: [...placed, { name, fits: false }], fits: false };
    const tree = cluster.free.domainsFor(fit)?.tree;
    const pods = Map.groupBy(cluster.free.placedAfter(mark), ({ slot }) => tree?.leafAt[slot] ?? -1);
    const domains = [...pods]
      .sort(([a], [b]) => a - b)
      .map(([leaf, runs]) => {
        const path = tree?.pathOf(leaf) ?? [];
        return { values: byHost ? path.slice(-1) : path, count: runs.reduce((sum, run) => sum + run.pods, 0) };
      });
    placed.push({ name, fits: true, levels: byHost ? levels.slice(-1) : levels, domains });
  }
  return { podSets: placed, fits: true };
}

/** The usable nodes, with what pods of others leave. */
function nodesOf({ nodes, otherPods }: PlaceCase["input"]): readonly NodeCapacity[] {
  return nodes.flatMap(({ name, labels, allocatable, ready, unschedulable = false, taints = [] }) => {
    if (!ready) return [];
    const free: Record<string, number> = { ...allocatable };
    for (const { node, requests, phase } of otherPods) {
      if (node !== name || phase === "Succeeded" || phase === "Failed") continue;
      for (const [resource, amount] of Object.entries({ ...requests, pods: 1 })) {
        free[resource] = (free[resource] ?? 0) - amount;
      }
    }
    const made = {
      name,
      labels,
      taints: taints.map(({ key, value = "", effect }) => ({ key, value, effect })),
      unschedulable,
      allocatable: thousandths(allocatable),
      free: thousandths(free),
    };
    return [made as NodeCapacity];
  });
}

/** Amounts as the planner has them. Cases give processors in thousandths already. */
function thousandths(amounts: Amounts): Amounts {
  return Object.fromEntries(
    Object.entries(amounts).map(([name, amount]) => [name, name === "cpu" ? amount : amount * 1000]),
  );
}
