import type { Change } from "../../src/core/plan/facts/changes.ts";
import { FleetState } from "../../src/core/plan/fleet-state.ts";
import { entriesOf, presentEntry } from "../../src/core/plan/model/capacity-entry.ts";
import type { PlanCluster, PlanSnapshot } from "../../src/core/plan/model/snapshot.ts";
import { Planner } from "../../src/core/plan/planner.ts";

/** The state that has every fact of a snapshot. */
export function stateOf(snapshot: PlanSnapshot): FleetState {
  const state = new FleetState();
  for (const change of changesOf(snapshot)) state.apply(change);
  return state;
}

/** The planner that has every fact of a snapshot. */
export function plannerOf(snapshot: PlanSnapshot): Planner {
  const planner = new Planner();
  for (const change of changesOf(snapshot)) planner.apply(change);
  return planner;
}

/** Everything in a snapshot as changes of an empty state. */
export function changesOf(snapshot: PlanSnapshot): readonly Change[] {
  const gangs = [...snapshot.waiting, ...snapshot.admitted];
  return [
    ...snapshot.queues.map((queue): Change => ({ kind: "queue", name: queue.name, version: 1, queue })),
    ...snapshot.pools.map((pool): Change => ({ kind: "pool", name: pool.pool, version: 1, pool })),
    ...snapshot.sums.map(({ scope, used }): Change => ({ kind: "sum", scope, version: 1, used })),
    ...snapshot.clusters.flatMap(clusterChanges),
    ...gangs.map((gang): Change => ({ kind: "gang", uid: gang.uid, version: gang.version, gang })),
  ];
}

function clusterChanges({ capacity, ...facts }: PlanCluster): readonly Change[] {
  const { name } = facts;
  const record: Change = { kind: "cluster", name, version: 1, facts };
  if (capacity === null) return [record];
  const changes = entriesOf(capacity).map(presentEntry);
  return [record, { kind: "capacity", cluster: name, epoch: 1, since: null, sequence: 1, changes }];
}
