import type { JobCount } from "../../../core/admin/fleet-survey.ts";
import type { Executor } from "../db/db.ts";

/** Counts the jobs that have not ended, by phase, and those that wait by the reason that their record shows. */
export function countJobs(executor: Executor): Promise<readonly JobCount[]> {
  return executor.query<JobCount>(COUNT_JOBS);
}

const COUNT_JOBS = `
select phase, reason, count(*) as jobs
  from (
    select phase,
           case when phase = 'WAITING' then coalesce(status->'waiting'->>'reason', 'NotEvaluated') else '' end as reason
      from jobs where completion_ms is null
  ) live
 group by phase, reason
 order by phase, reason`;
