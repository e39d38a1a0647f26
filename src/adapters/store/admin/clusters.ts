import type { ChangeOutcome } from "../../../core/admin/change-outcome.ts";
import type { ClusterRecord } from "../../../core/admin/cluster.ts";
import type { ClusterCapacity } from "../../../core/plan/snapshot.ts";
import { type Db, type Executor, json, onlyRow } from "../db/db.ts";
import { observerLease } from "../fleet/leases.ts";
import { ensurePools, type PoolBounds } from "./pools.ts";

const COLUMNS = `
  name, labels, flavors, cordoned, simulated, reachable, observed_ms as "observedMs", version,
  create_ms as "createTimeMs", capacity, gang_scheduler as "gangScheduler"`;

/**
 * Registers a cluster, or changes its settings. Its observed capacity and its cordon stay. Its flavors become pools.
 */
export function upsertCluster(
  db: Db,
  cluster: Pick<ClusterRecord, "name" | "labels" | "flavors" | "simulated">,
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

/** Records the capacity that an observer saw, if it differs from the record. True: it was written. */
export async function recordCapacity(
  executor: Executor,
  seen: {
    readonly cluster: string;
    readonly capacity: ClusterCapacity;
    readonly reachable: boolean;
    readonly nowMs: number;
    /** The epoch of the observer's lease: an observer that has lost it changes nothing. Omitted: only one observes. */
    readonly leaseEpoch?: number;
  },
): Promise<boolean> {
  const rows = await executor.query(RECORD_CAPACITY, [
    seen.cluster,
    json(seen.capacity),
    seen.reachable,
    seen.nowMs,
    observerLease(seen.cluster),
    seen.leaseEpoch ?? null,
  ]);
  return rows.length === 1;
}

const RECORD_CAPACITY = `
update clusters set capacity = $2::json, reachable = $3, observed_ms = $4
 where name = $1 and forgotten_ms is null and (capacity is null or capacity::text <> $2::json::text or reachable <> $3)
   and ($6::bigint is null or exists (select from leases where leases.name = $5 and epoch = $6))
returning 1`;

/** Marks a cluster that its observer cannot reach: no gang is admitted there until it can. True: it was reachable. */
export async function markUnreachable(executor: Executor, cluster: string): Promise<boolean> {
  const rows = await executor.query("update clusters set reachable = false where name = $1 and reachable returning 1", [
    cluster,
  ]);
  return rows.length === 1;
}

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

function selectClusters(executor: Executor, name: string | null): Promise<readonly ClusterRecord[]> {
  return executor.query<ClusterRecord>(
    `select ${COLUMNS} from clusters where forgotten_ms is null and ($1::text is null or name = $1) order by name`,
    [name],
  );
}
