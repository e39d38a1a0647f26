import type { ChangeOutcome } from "../../../core/admin/change-outcome.ts";
import type { ClusterRecord } from "../../../core/admin/cluster.ts";
import { type Db, type Executor, json, onlyRow } from "../db/db.ts";
import { CAPACITY_ENTRIES, type CapacityColumns, withCapacity } from "./cluster-capacity.ts";
import { setUid } from "./cluster-uids.ts";
import { ensurePools, type PoolBounds } from "./pools.ts";

const COLUMNS = `
  name, labels, flavors, cordoned, simulated, reachable, coalesce(observed_ms, capacity_ms) as "observedMs", version,
  create_ms as "createTimeMs", capacity, ${CAPACITY_ENTRIES} as entries, gang_scheduler as "gangScheduler",
  (select uid from cluster_uids where cluster = c.name) as uid`;

/**
 * Registers a cluster, or changes its settings. Its observed capacity and its cordon stay. Its flavors become pools.
 */
export function upsertCluster(
  db: Db,
  cluster: Pick<ClusterRecord, "name" | "labels" | "flavors" | "simulated"> & {
    /** Omitted: it is read later. */
    readonly uid?: string;
  },
  { nowMs, poolsMax }: PoolBounds,
): Promise<ClusterRecord> {
  return db.tx(async (tx) => {
    await tx.query(UPSERT_CLUSTER, [
      cluster.name,
      json(cluster.labels),
      json(cluster.flavors),
      cluster.simulated,
      nowMs,
    ]);
    if (cluster.uid !== undefined) await setUid(tx, { cluster: cluster.name, uid: cluster.uid });
    const flavors = cluster.flavors.map((flavor) => flavor.name);
    const refused = await ensurePools(tx, flavors, { nowMs, poolsMax });
    if (refused?.kind === "tooManyPools") {
      throw new Error(`cluster ${cluster.name} has flavors for more than ${poolsMax} pools, which is the maximum`);
    }
    return onlyRow(await selectClusters(tx, cluster.name));
  });
}

const UPSERT_CLUSTER = `
insert into clusters as c (name, labels, flavors, simulated, create_ms) values ($1, $2::jsonb, $3::json, $4, $5)
on conflict (name) do update
   set labels = excluded.labels, flavors = excluded.flavors, simulated = excluded.simulated, version = c.version + 1,
       credentials = null, forgotten_ms = null
 where c.forgotten_ms is not null or c.labels <> excluded.labels or c.flavors::jsonb <> excluded.flavors::jsonb
    or c.simulated <> excluded.simulated`;

export async function setCordoned(
  executor: Executor,
  name: string,
  cordoned: boolean,
): Promise<ChangeOutcome<ClusterRecord>> {
  await executor.query(SET_CORDONED, [name, cordoned]);
  const record = await getCluster(executor, name);
  return record === null ? { kind: "notFound" } : { kind: "done", record };
}

const SET_CORDONED = `
update clusters set cordoned = $2, version = version + 1
 where name = $1 and forgotten_ms is null and cordoned <> $2`;

export async function getCluster(executor: Executor, name: string): Promise<ClusterRecord | null> {
  const [record] = await selectClusters(executor, name);
  return record ?? null;
}

export function listClusters(executor: Executor): Promise<readonly ClusterRecord[]> {
  return selectClusters(executor, null);
}

async function selectClusters(executor: Executor, name: string | null): Promise<readonly ClusterRecord[]> {
  const rows = await executor.query<ClusterRecord & CapacityColumns>(
    `select ${COLUMNS} from clusters c where forgotten_ms is null and ($1::text is null or name = $1) order by name`,
    [name],
  );
  return rows.map(withCapacity);
}
