import type { Job } from "../../../core/job/job.ts";
import type { JobKey, LoggedChange, LogPlace } from "../../../core/job/request/event-log.ts";
import type { JobFilter } from "../../../core/job/request/filter.ts";
import { PAGE_BYTES_MAX } from "../../../core/job/request/list.ts";
import { type Db, onlyRow, readSnapshot } from "../db/db.ts";
import { FILTER_PARAMS, filterParams } from "./job-filter.ts";
import { JOB_READING, type JobDocument, jobOfDocument } from "./job-row.ts";
import { ORDERS, type PageRow, pageOf } from "./list-jobs.ts";
import { logHead } from "./sequence.ts";

/**
 * A page of the matching jobs without templates, in the order of creation; the log's head; and the newest versions of
 * jobs whose changes have no position.
 */
export function watchSnapshot(
  db: Db,
  { filter, after, limit }: { readonly filter: JobFilter; readonly after: JobKey | null; readonly limit: number },
) {
  const order = ORDERS.create_time;
  const page = { order, after: after === null ? "" : `and ${order.condition(FILTER_PARAMS + 1)}`, pageSize: limit };
  const params = [...filterParams(filter), ...(after === null ? [] : [after.createTimeMs, after.uid])];
  return readSnapshot(db, async (tx) => {
    const head = await logHead(tx);
    const ahead = await tx.query<JobKey & { readonly version: number }>(AHEAD);
    const rows = await tx.query<PageRow>(pageOf(page, JOB_READING.BASIC), params);
    return { jobs: rows.map(JOB_READING.BASIC.jobOf), head, ahead, more: rows.length < (rows[0]?.found ?? 0) };
  });
}

const AHEAD = `
select job_uid as uid, max(version) as version, min((job->>'createTimeMs')::bigint) as "createTimeMs"
  from job_changes where position is null group by job_uid`;

/**
 * Entries after a place, oldest first: as many as a page holds. `gap`: the position was pruned, or is beyond the head,
 * or the log has another incarnation.
 */
export function entriesAfter(db: Db, { incarnation, position }: LogPlace, limit: number) {
  return readSnapshot(db, async (tx) => {
    const log = onlyRow(await tx.query<LogRow>("select head, pruned_to, incarnation from job_log"));
    const isKept = position >= log.pruned_to && position <= log.head;
    if (!isKept || incarnation !== log.incarnation) return { entries: [], gap: true };
    const rows = await tx.query<EntryRow>(ENTRIES_AFTER, [position, limit]);
    return { entries: rows.map(entryOf), gap: false };
  });
}

type LogRow = { readonly head: number; readonly pruned_to: number; readonly incarnation: string };

type EntryRow = {
  readonly position: number;
  readonly change: LoggedChange["type"];
  readonly job: JobDocument;
  readonly previous_phase: string | null;
  /** Empty: none. Null: the entry is the job's first. */
  readonly previous_cluster: string | null;
  readonly previous_labels: Job["labels"] | null;
};

const ENTRIES_AFTER = `
select position, change, job, previous_phase, previous_cluster, previous_labels
  from (
    select *, row_number() over (order by position) as place,
           sum(octet_length(job::text)) over (order by position) as bytes
      from (select * from job_changes where position > $1 order by position limit $2) following
  ) measured
 where place = 1 or bytes <= ${PAGE_BYTES_MAX}
 order by position`;

function entryOf(row: EntryRow): LoggedChange {
  const { previous_phase: phase, previous_cluster: cluster, previous_labels: labels } = row;
  return {
    position: row.position,
    type: row.change,
    job: jobOfDocument(row.job),
    previous: phase === null || cluster === null ? null : { phase, cluster: cluster || null, labels },
  };
}
