import type { Job } from "../../core/job/job.ts";
import { type Executor, storable } from "./db.ts";
import { JOB_COLUMNS, type JobRow, jobOf } from "./job-row.ts";

/** So many are compared at most: whoever uses one key for more has chosen it badly, and only loses the chance of an answer. */
const ALIKE_MAX = 50;

/** Jobs of a job's namespace and kind with its cache key that may have its result, or make it; those that have succeeded first, then by age. */
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
