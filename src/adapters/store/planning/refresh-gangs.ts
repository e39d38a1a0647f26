import { PAGE_BYTES_MAX } from "../../../core/job/request/list.ts";
import type { Registry } from "../../../core/kinds/registry.ts";
import type { Db, Executor } from "../db/db.ts";
import { FIRST_UID } from "../db/first-uid.ts";
import { askParameters, gangColumns, writeAsks } from "../jobs/gang-columns.ts";
import { loadJobs } from "../jobs/load-job.ts";

/** How many jobs one transaction computes at most. It is bounded so that no transaction locks rows for long. */
const BATCH = 500;

/**
 * Computes the gangs of jobs that a program of the version before has created or changed, and that have not ended. Each
 * batch commits on its own, so that a call which was interrupted loses one batch. Skips jobs that others change now.
 * Returns the number of jobs. Costs one look at an index if there are none.
 */
export async function refreshGangs(db: Db, kinds: Registry): Promise<number> {
  let refreshed = 0;
  let after: string | null = FIRST_UID;
  while (after !== null) {
    const from: string = after;
    const batch: readonly string[] = await db.tx((tx) => refreshBatch(tx, from, kinds));
    refreshed += batch.length;
    after = batch.at(-1) ?? null;
  }
  return refreshed;
}

/** Returns the uids of the jobs, in their order. */
async function refreshBatch(tx: Executor, after: string, kinds: Registry): Promise<readonly string[]> {
  const due = await tx.query<{ uid: string }>(LOCK_OUTDATED, [after, BATCH]);
  const jobs = await loadJobs(
    tx,
    due.map(({ uid }) => uid),
  );
  const gangs = [...jobs.values()].map((job) => ({ uid: job.uid, ...gangColumns(job, kinds) }));
  if (gangs.length > 0) {
    await tx.query(WRITE_GANGS, [
      gangs.map(({ uid }) => uid),
      gangs.map(({ asked }) => asked.hash),
      gangs.map(({ documented }) => documented),
      ...askParameters(gangs.map(({ asked }) => asked)),
    ]);
  }
  return due.map(({ uid }) => uid);
}

/** Locks a batch, and returns as many jobs of it as a page holds, and at least one. */
const LOCK_OUTDATED = `
with due as materialized (
  select uid, coalesce(spec_bytes, octet_length(spec::text)) as bytes
    from jobs
   where completion_ms is null and gang_version is distinct from version and uid > $1
   order by uid limit $2
     for no key update skip locked
), measured as (
  select uid, row_number() over (order by uid) as place, sum(bytes) over (order by uid) as total from due
)
select uid from measured where place = 1 or total <= ${PAGE_BYTES_MAX} order by uid`;

const WRITE_GANGS = `
with asked as (${writeAsks("$4", "$5")}
)
update jobs j
   set ask_hash = g.ask_hash, gang = g.gang::json, generation = j.generation + 1,
       gang_version = j.version
  from unnest($1::uuid[], $2::text[], $3::text[]) as g (uid, ask_hash, gang)
 where j.uid = g.uid`;
