import type { Job } from "../../core/job/job.ts";
import type { PlanCluster, PlanQueue, PlanSnapshot } from "../../core/plan/snapshot.ts";
import { type Db, type Executor, onlyRow, readSnapshot } from "./db.ts";
import { JOB_COLUMNS, type JobRow, jobOf } from "./job-row.ts";

/** Everything that a plan is made from, as of one commit. */
export function planSnapshot(db: Db): Promise<PlanSnapshot> {
  return readSnapshot(db, async (tx) => {
    const domains = await tx.query<{ epoch: number }>("select epoch from quota_domains where name = 'default'");
    const jobs = (await tx.query<JobRow>(PLANNED_JOBS)).map(jobOf);
    return {
      quotaEpoch: onlyRow(domains).epoch,
      waiting: jobs.filter((job) => !isLive(job)),
      lastAdmissions: onlyRow(await tx.query<{ numbers: Record<string, number> }>(LAST_ADMISSIONS)).numbers,
      admitted: jobs.filter(isLive),
      queues: await tx.query<PlanQueue>(PLAN_QUEUES),
      clusters: await planClusters(tx),
    };
  });
}

function isLive(job: Job): boolean {
  return job.admissions.some((admission) => admission.state === "live");
}

const PLANNED_JOBS = `
select ${JOB_COLUMNS} from jobs j
 where (j.phase = 'WAITING' and j.cancel is null and j.delete_ms is null)
    or j.uid in (select job_uid from admissions where state = 'live')
 order by j.create_ms, j.uid`;

const LAST_ADMISSIONS = `
select coalesce(json_object_agg(job_uid, number), '{}') as numbers
  from (
    select job_uid, max(number) as number from admissions
     where job_uid in (select uid from jobs where phase = 'WAITING') group by job_uid
  ) last`;

const PLAN_QUEUES = `
select q.name, q.strategy,
       coalesce((
         select json_agg(json_build_object('flavor', flavor, 'resource', resource, 'nominal', nominal) order by position)
           from queue_quotas where queue = q.name
       ), '[]') as quotas,
       coalesce((
         select json_object_agg(pool, used) from allocation_sums where scope = 'queue' and name = q.name and used > 0
       ), '{}') as used
  from queues q order by q.name`;

async function planClusters(tx: Executor): Promise<readonly PlanCluster[]> {
  return tx.query<PlanCluster>(
    `select name, labels, flavors, cordoned, reachable, admission_counter as "admissionCounter", capacity
       from clusters where forgotten_ms is null order by name`,
  );
}
