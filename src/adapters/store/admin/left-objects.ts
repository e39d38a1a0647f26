/** What is left in a cluster of admissions that have left it. */
import { type Executor, onlyRow } from "../db/db.ts";
import type { JobAdmission } from "../ledger/name-heirs.ts";

/** The owner of an object that is not being deleted. */
export type SeenOwner = JobAdmission & {
  /** The fence that the object names. Null: an older version has made it. */
  readonly fence: string | null;
  /** True: it is a pod that has not ended. */
  readonly runs: boolean;
};

/**
 * The jobs of which something is left in a cluster: of an admission that was undone or is not recorded, of a job that
 * is gone, or a pod that runs of an admission that was given up. `seen`: the owners of objects that the cluster shows.
 */
export async function jobsLeftIn(
  executor: Executor,
  cluster: string,
  seen: readonly SeenOwner[],
): Promise<readonly string[]> {
  const rows = await executor.query<{ jobUid: string }>(JOBS_LEFT, seenParams(cluster, seen));
  return rows.map(({ jobUid }) => jobUid);
}

/**
 * Lets a cluster that has returned take gangs again, if nothing is left there and every cluster is adopted. `seen`: the
 * owners of all objects that the cluster shows. Returns the jobs of which something is left.
 */
export async function endReturn(
  executor: Executor,
  cluster: string,
  seen: readonly SeenOwner[],
): Promise<{ readonly ended: boolean; readonly left: readonly string[] }> {
  return onlyRow(await executor.query(END_RETURN, seenParams(cluster, seen)));
}

function seenParams(cluster: string, seen: readonly SeenOwner[]): readonly unknown[] {
  const owners = [...new Map(seen.map((one) => [Object.values(one).join(" "), one])).values()];
  return [
    cluster,
    owners.map(({ jobUid }) => jobUid),
    owners.map(({ admission }) => admission),
    owners.map(({ fence }) => fence),
    owners.map(({ runs }) => runs),
  ];
}

const JOBS_LEFT = `
select distinct seen.job_uid as "jobUid"
  from (
    select *, case when job_uid ~ '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' then job_uid::uuid end as uid
      from unnest($2::text[], $3::int[], $4::text[], $5::boolean[]) as owner (job_uid, admission, fence, runs)
  ) seen
 where not exists (
   select from admissions a
    where a.job_uid = seen.uid and a.number = seen.admission and a.cluster = $1 and a.state <> 'undone'
      and (seen.fence is null or seen.fence = a.details ->> 'fence')
      and not (seen.runs and a.details -> 'abandonedMs' is not null)
 )`;

const END_RETURN = `
with remains as (${JOBS_LEFT}
), ended as (
  update clusters set returning_ms = null
   where name = $1 and reachable and returning_ms is not null and not exists (select from remains)
     and not exists (select from clusters where unadopted_ms is not null and forgotten_ms is null)
  returning 1
)
select exists (select from ended) as ended, coalesce((select json_agg("jobUid") from remains), '[]') as left`;
