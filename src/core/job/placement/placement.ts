import { getOrCreate } from "../../../runtime/get-or-create.ts";

/**
 * The planned nodes of the pods of an admission. They are recorded beside the admission, and steer its pods. A pod that
 * is on another node counts on that node.
 */
export type Placement = {
  /** Rises each time that members are planned anew or come in addition. The first is 1. */
  readonly version: number;
  /** The names of nodes. Runs name them by their place in this list. */
  readonly nodes: readonly string[];
  /** No two runs have the same member. */
  readonly runs: readonly PlacementRun[];
};

/** Members of one replica type with consecutive indexes that are planned on one node. */
export type PlacementRun = {
  readonly role: string;
  readonly first: number;
  readonly count: number;
  readonly node: number;
  /** Other nodes that also took one of them when they were planned, the best ones first; at most `OTHER_NODES_MAX`. */
  readonly others: readonly number[];
  /** The version that planned them. */
  readonly version: number;
};

/** So many nodes beside the planned one may take a pod, in case that the planned one goes before the pod is bound. */
export const OTHER_NODES_MAX = 7;

/** A run as it is planned: with the names of its nodes. */
export type PlannedRun = Omit<PlacementRun, "node" | "others" | "version"> & {
  readonly node: string;
  readonly others: readonly string[];
};

/** The planned place of one member. */
export type PlannedPlace = {
  readonly node: string;
  readonly others: readonly string[];
  /** The version of the placement that planned it. */
  readonly version: number;
};

/** The placement after these members were planned, or planned anew. `before` null: none was planned before. */
export function withRuns(before: Placement | null, planned: readonly PlannedRun[]): Placement {
  const version = (before?.version ?? 0) + 1;
  const runs = before === null ? [] : namedRuns(before);
  const runOf = runsByMember([...runs, ...planned.map((one) => ({ ...one, version }))]);
  const nodes = new Map<string, number>();
  const placeOf = (name: string) => getOrCreate(nodes, name, () => nodes.size);
  const kept = [...runOf.values()].flatMap(consecutive).map(({ node, others, ...run }) => {
    return { ...run, node: placeOf(node), others: others.map(placeOf) };
  });
  return { version, nodes: [...nodes.keys()], runs: kept };
}

/** The run of each member by replica type and index. Of two runs with the same member, the later one holds. */
function runsByMember<R extends Pick<PlacementRun, "role" | "first" | "count">>(
  runs: readonly R[],
): ReadonlyMap<string, readonly (R | undefined)[]> {
  const byRole = new Map<string, (R | undefined)[]>();
  for (const run of runs) {
    const ofRole = getOrCreate(byRole, run.role, (): (R | undefined)[] => []);
    for (let index = run.first; index < run.first + run.count; index++) ofRole[index] = run;
  }
  return byRole;
}

/** The runs of one replica type, from the run that each index is of. */
function consecutive(runOf: readonly (NamedRun | undefined)[]): readonly NamedRun[] {
  const runs: { run: NamedRun; first: number; count: number }[] = [];
  for (const [index, run] of runOf.entries()) {
    const last = runs.at(-1);
    if (run === undefined) continue;
    if (last?.run === run && last.first + last.count === index) last.count += 1;
    else runs.push({ run, first: index, count: 1 });
  }
  return runs.map(({ run, first, count }) => ({ ...run, first, count }));
}

/** The planned place of each member by replica type and index. */
export type PlannedPlaces = (role: string, index: number) => PlannedPlace | null;

export function placesIn(placement: Placement | null): PlannedPlaces {
  if (placement === null) return () => null;
  // Most steps of a job ask for no place.
  let runOf: ReturnType<typeof runsByMember<PlacementRun>> | null = null;
  return (role, index) => {
    runOf ??= runsByMember(placement.runs);
    const run = runOf.get(role)?.[index];
    if (run === undefined) return null;
    const { version } = run;
    return { node: nodeName(placement, run.node), others: run.others.map((at) => nodeName(placement, at)), version };
  };
}

/** The node that each of the first `count` members of a replica type is planned on. Null: none is planned. */
export function nodesOf(placement: Placement, role: string, count: number): readonly (string | null)[] {
  const nodes: (string | null)[] = Array.from({ length: count }, () => null);
  for (const run of placement.runs) {
    if (run.role !== role) continue;
    nodes.fill(nodeName(placement, run.node), run.first, run.first + run.count);
  }
  return nodes;
}

type NamedRun = PlannedRun & Pick<PlacementRun, "version">;

function namedRuns(placement: Placement): readonly NamedRun[] {
  return placement.runs.map((run) => ({
    ...run,
    node: nodeName(placement, run.node),
    others: run.others.map((at) => nodeName(placement, at)),
  }));
}

function nodeName({ nodes }: Placement, at: number): string {
  return nodes[at] ?? "";
}
