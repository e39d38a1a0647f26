import type { Executor } from "../db/db.ts";
import { FIRST_UID } from "../db/first-uid.ts";

/** Jobs of these buckets that may have objects in a cluster, in the order of uids. `after` null: the first page. */
export async function openJobs(
  executor: Executor,
  buckets: readonly number[],
  page: { readonly after: string | null; readonly limit: number },
): Promise<readonly string[]> {
  const rows = await executor.query<{ uid: string }>(OPEN_JOBS, [buckets, page.after ?? FIRST_UID, page.limit]);
  return rows.map((row) => row.uid);
}

const OPEN_JOBS = `
select distinct j.uid
  from admission_clusters a join jobs j on j.uid = a.job_uid
 where a.job_uid > $2 and j.bucket = any($1::smallint[])
 order by j.uid
 limit $3`;
