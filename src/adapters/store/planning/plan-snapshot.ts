import { liveAdmission } from "../../../core/job/job.ts";
import type { PlanCluster, PlanSnapshot } from "../../../core/plan/snapshot.ts";
import { CAPACITY_ENTRIES, type CapacityColumns, withCapacity } from "../admin/cluster-capacity.ts";
import { IS_RETIRED } from "../admin/clusters.ts";
import { type Db, type Executor, onlyRow, readSnapshot } from "../db/db.ts";
import { planCallers, planPools, planQueues, planSums } from "./fleet-settings.ts";
import { type GangReading, RUNS, readGangs, WAITS } from "./read-gangs.ts";

/** The first waiting jobs of one queue, at most `max`. */
type FirstOfQueue = { readonly queue: string; readonly max: number };

/** Reads everything that a plan depends on, as of one commit. `only`: reads no other waiting jobs than these. */
export function planSnapshot(db: Db, reading: GangReading, only: FirstOfQueue | null = null): Promise<PlanSnapshot> {
  return readSnapshot(db, async (tx) => {
    const domains = await tx.query<{ epoch: number }>("select epoch from quota_domains where name = 'default'");
    const select =
      only === null
        ? { condition: `${WAITS} or ${RUNS}`, params: [] }
        : { condition: `${FIRST_OF_QUEUE} or ${RUNS}`, params: [only.queue, only.max] };
    const gangs = await readGangs(tx, select, reading);
    const waiting = gangs.filter((gang) => liveAdmission(gang) === null);
    return {
      quotaEpoch: onlyRow(domains).epoch,
      waiting,
      admitted: gangs.filter((gang) => liveAdmission(gang) !== null),
      queues: await planQueues(tx),
      pools: await planPools(tx),
      sums: await planSums(tx, null),
      callers: waiting.length === 0 && only === null ? [] : await planCallers(tx),
      clusters: await planClusters(tx),
    };
  });
}

const FIRST_OF_QUEUE = `
j.uid in (
  select uid from jobs
   where queue = $1 and phase = 'WAITING' and cancel is null and delete_ms is null
   order by priority desc, create_ms, uid limit $2
)`;

async function planClusters(tx: Executor): Promise<readonly PlanCluster[]> {
  const rows = await tx.query<PlanCluster & CapacityColumns>(
    `select name, labels, flavors, cordoned, simulated, ${IS_RETIRED} as retired, reachable,
            admission_counter as "admissionCounter", capacity, ${CAPACITY_ENTRIES} as entries
       from clusters c where forgotten_ms is null order by name`,
  );
  return rows.map(withCapacity);
}
