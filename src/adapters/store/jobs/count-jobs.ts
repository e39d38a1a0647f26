import type { JobCount } from "../../../core/admin/fleet-survey.ts";
import type { Executor } from "../db/db.ts";
import { WAIT_REASON } from "./job-filter.ts";

/** Counts the jobs that have not ended, by phase, and those that wait by the reason that their record shows. */
export function countJobs(executor: Executor): Promise<readonly JobCount[]> {
  return executor.query<JobCount>(COUNT_JOBS);
}

const COUNT_JOBS = `
select phase, reason, count(*) as jobs
  from (
    select j.phase, case when j.phase = 'WAITING' then ${WAIT_REASON} else '' end as reason
      from jobs j where j.completion_ms is null
  ) live
 group by phase, reason
 order by phase, reason`;
