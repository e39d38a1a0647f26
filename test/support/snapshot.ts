import {
  CAPACITY_ENTRIES,
  type CapacityColumns,
  withCapacity,
} from "../../src/adapters/store/admin/cluster-capacity.ts";
import { IS_RETIRED } from "../../src/adapters/store/admin/clusters.ts";
import { type Db, type Executor, onlyRow, readSnapshot } from "../../src/adapters/store/db/db.ts";
import { planCallers, planPools, planQueues, planSums } from "../../src/adapters/store/planning/fleet-settings.ts";
import { type GangReading, readGangs, WAITS } from "../../src/adapters/store/planning/read-gangs.ts";
import { refreshGangs } from "../../src/adapters/store/planning/refresh-gangs.ts";
import { liveAdmission } from "../../src/core/job/job.ts";
import type { Registry } from "../../src/core/kinds/registry.ts";
import type { PlanCluster, PlanSnapshot } from "../../src/core/plan/model/snapshot.ts";
import { OWN_KINDS } from "./kinds.ts";

/** Everything that a plan depends on, as the database has it now. */
export async function snapshotOf(db: Db, kinds: Registry = OWN_KINDS): Promise<PlanSnapshot> {
  await refreshGangs(db, kinds);
  return planSnapshot(db, { kinds, asks: new Map() });
}

/** Reads everything that a plan depends on, as of one commit. */
export function planSnapshot(db: Db, reading: GangReading): Promise<PlanSnapshot> {
  return readSnapshot(db, async (tx) => {
    const domains = await tx.query<{ epoch: number }>("select epoch from quota_domains where name = 'default'");
    const gangs = await readGangs(tx, { condition: `${WAITS} or ${RUNS}`, params: [] }, reading);
    return {
      quotaEpoch: onlyRow(domains).epoch,
      waiting: gangs.filter((gang) => liveAdmission(gang) === null),
      admitted: gangs.filter((gang) => liveAdmission(gang) !== null),
      queues: await planQueues(tx),
      pools: await planPools(tx),
      sums: await planSums(tx, null),
      callers: await planCallers(tx),
      clusters: await planClusters(tx),
    };
  });
}

/** Jobs with a live admission, as a condition. */
const RUNS = "j.uid in (select job_uid from admissions where state = 'live')";

async function planClusters(tx: Executor): Promise<readonly PlanCluster[]> {
  const rows = await tx.query<PlanCluster & CapacityColumns>(
    `select name, labels, flavors, topology, cordoned, simulated, ${IS_RETIRED} as retired,
            reachable and returning_ms is null as reachable, reachable and returning_ms is not null as returning,
            unusable is not null as unusable,
            exists (select from clusters where unadopted_ms is not null and forgotten_ms is null) as restored,
            admission_counter as "admissionCounter", capacity, ${CAPACITY_ENTRIES} as entries
       from clusters c where forgotten_ms is null order by name`,
  );
  return rows.map(withCapacity);
}
