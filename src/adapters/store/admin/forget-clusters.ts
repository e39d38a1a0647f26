import { type Executor, json } from "../db/db.ts";

/**
 * Forgets clusters whose rows the caller has locked: what was placed there counts as gone. Their rows stay, so that
 * every process notices. Simulated ones are noted as retired, and may come back once no real cluster is registered, or
 * as removed for good.
 */
export async function forgetClusters(
  tx: Executor,
  of: {
    readonly names: readonly string[];
    readonly simulation: "retired" | "removed";
    readonly nowMs: number;
  },
): Promise<void> {
  const names = json(of.names);
  await tx.query(FORGET_CLUSTERS, [names, of.nowMs, of.simulation]);
  await tx.query(`delete from cluster_capacity where cluster in ${NAMES}`, [names]);
}

const NAMES = "(select json_array_elements_text($1::json))";

const FORGET_CLUSTERS = `
update clusters
   set forgotten_ms = $2, simulation = case when simulated then $3 end, credentials = null, capacity = null,
       observed_ms = null, capacity_ms = null, capacity_epoch = capacity_epoch + 1, reachable = false, unusable = null,
       silent_ms = null, silence_ms = 0, lost_ms = null, lost_fence = null, returning_ms = null, unadopted_ms = null,
       version = version + 1, admission_counter = admission_counter + 1
 where name in ${NAMES}`;

/** Makes the jobs due that were placed in these clusters: no more news of their pods will come. */
export async function recheckPlaced(executor: Executor, clusters: readonly string[], nowMs: number): Promise<void> {
  await executor.query(RECHECK_PLACED, [json(clusters), nowMs]);
}

const RECHECK_PLACED = `
with placed as (
  select uid from jobs
   where uid in (select job_uid from admission_clusters where cluster in ${NAMES})
     and (recheck_at_ms is null or recheck_at_ms > $2)
   order by uid
     for no key update
)
update jobs set recheck_at_ms = $2 where uid in (select uid from placed)`;
