import type { Job } from "../../../core/job/job.ts";
import { type Executor, storable } from "../db/db.ts";
import { JOB_COLUMNS, type JobRow, jobOf } from "./job-row.ts";

/** How many jobs with one cache key are compared. With more of them, a job may miss a result that it could reuse. */
const ALIKE_MAX = 50;

/**
 * Other jobs with the namespace, kind and cache key of this job that have a result or may still produce one. Those that
 * have succeeded come first, then the older.
 */
export async function findAlike(executor: Executor, { uid, namespace, spec }: Job): Promise<readonly Job[]> {
  const { kind, runPolicy } = spec;
  const rows = await executor.query<JobRow>(FIND_ALIKE, [
    namespace,
    kind,
    storable(runPolicy.cacheKey ?? ""),
    uid,
    ALIKE_MAX,
  ]);
  return rows.map(jobOf);
}

const FIND_ALIKE = `
select ${JOB_COLUMNS} from jobs j
 where j.namespace = $1 and j.kind = $2 and j.cache_key = $3 and j.uid <> $4
   and j.delete_ms is null and j.phase not in ('FAILED', 'CANCELLED', 'SUSPENDED')
 order by (j.phase = 'SUCCEEDED') desc, j.create_ms, j.uid
 limit $5`;
