import type { ChangeOutcome } from "../../../core/admin/change-outcome.ts";
import type { ClusterRecord } from "../../../core/admin/cluster.ts";
import type { Db, Executor } from "../db/db.ts";
import { appendAudit } from "./audit.ts";
import { CAPACITY_ENTRIES, type CapacityColumns, withCapacity } from "./cluster-capacity.ts";

/** True for a simulated cluster that takes no gangs, since a real one is registered. */
export const IS_RETIRED = "(simulated and coalesce(simulation, '') = 'retired')";

const COLUMNS = `
  name, labels, flavors, topology, cordoned, simulated, ${IS_RETIRED} as retired, reachable,
  case when not reachable
       then json_build_object('sinceMs', silent_ms, 'unusable', unusable, 'lostMs', lost_ms) end as silence,
  returning_ms as "returningMs", unadopted_ms as "unadoptedMs",
  coalesce(observed_ms, capacity_ms) as "observedMs", version, create_ms as "createTimeMs", capacity,
  ${CAPACITY_ENTRIES} as entries, gang_scheduler as "gangScheduler",
  (select uid from cluster_uids where cluster = c.name) as uid`;

export function setCordoned(
  db: Db,
  name: string,
  { cordoned, nowMs }: { readonly cordoned: boolean; readonly nowMs: number },
): Promise<ChangeOutcome<ClusterRecord>> {
  return db.tx(async (tx) => {
    const changed = await tx.query(SET_CORDONED, [name, cordoned]);
    const record = await getCluster(tx, name);
    if (record === null) return { kind: "notFound" };
    const action = cordoned ? "CordonCluster" : "UncordonCluster";
    const details = { before: { cordoned: !cordoned }, after: { cordoned } };
    if (changed.length > 0) await appendAudit(tx, { timeMs: nowMs, action, subject: name, details });
    return { kind: "done", record };
  });
}

const SET_CORDONED = `
update clusters set cordoned = $2, version = version + 1
 where name = $1 and forgotten_ms is null and cordoned <> $2
returning name`;

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
