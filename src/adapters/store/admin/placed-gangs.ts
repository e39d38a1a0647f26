import type { PlacedGang } from "../../../core/admin/placed-gangs.ts";
import type { Executor } from "../db/db.ts";

/** The gangs with a live admission in a cluster, by name. */
export async function placedGangs(executor: Executor, cluster: string): Promise<readonly PlacedGang[]> {
  return executor.query<PlacedGang>(PLACED, [cluster]);
}

const PLACED = `
select j.namespace, j.name,
       json_build_object('phase', j.phase, 'replicaStatuses', j.status -> 'replicaStatuses') as status
  from admissions a join jobs j on j.uid = a.job_uid
 where a.cluster = $1 and a.state = 'live'
 order by j.namespace, j.name`;
