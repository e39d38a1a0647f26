/**
 * Deletes old entries of the log, and what leaves with them. Each call deletes a page, and reads about as many rows as
 * it deletes, however many rows stay.
 */
import type { Pruned, PrunePage } from "../../../core/job/request/event-log.ts";
import { maxOf } from "../../../runtime/lists.ts";
import { type Db, type Executor, onlyRow } from "../db/db.ts";

/**
 * For the rest of a transaction. Else PostgreSQL reads a whole table to join it with a page of keys, or to sort it, if
 * it takes the table for small.
 */
export const BY_INDEX = `
select set_config('enable_seqscan', 'off', true), set_config('enable_bitmapscan', 'off', true),
       set_config('enable_hashjoin', 'off', true), set_config('enable_mergejoin', 'off', true)`;

/** Times of two processes differ by less. */
const TOLERANCE_MS = 60_000;

/**
 * Deletes a page of entries that are older than `beforeMs`, from the first one to the one before the first younger one,
 * so that the log has no holes. The request ids of a job leave with the entry of its deletion. `after`: a position.
 *
 * Readers see the new beginning of the log before its entries go, in a transaction of its own: so the row of the log is
 * locked for one short statement. Entries that a call before has left are before that beginning, and go too.
 */
export async function pruneChanges(db: Db, { beforeMs, nowMs, after, limit }: PrunePage): Promise<Pruned> {
  const { upTo } = await db.tx(async (tx) => {
    await tx.query(BY_INDEX);
    return onlyRow(await tx.query<{ upTo: number | null }>(OLD_ENTRIES, [beforeMs, limit, nowMs + TOLERANCE_MS]));
  });
  if (upTo !== null) await db.query(RAISE_BEGINNING, [upTo]);
  const positions = await db.tx((tx) => deleteEntries(tx, after, limit));
  const last = positions.at(-1);
  return { deleted: positions.length, next: last === undefined || positions.length < limit ? null : last };
}

/** Deletes a page of entries before the log's beginning, with request ids. Returns their positions in order. */
async function deleteEntries(tx: Executor, after: number, limit: number): Promise<readonly number[]> {
  await tx.query(BY_INDEX);
  const entries = await tx.query<{ position: number; gone: string | null }>(ENTRIES, [after, limit]);
  const [first, last] = [entries.at(0), entries.at(-1)];
  if (first === undefined || last === undefined) return [];
  const gone = entries.flatMap((entry) => entry.gone ?? []);
  if (gone.length > 0) await tx.query(DELETE_REQUESTS, [gone]);
  await tx.query(DELETE_ENTRIES, [first.position, last.position]);
  return entries.map(({ position }) => position);
}

/**
 * The last old entry before the first younger one, of those that a page holds. An entry that a wrong clock has stamped
 * in the future is as old as the next one.
 */
const OLD_ENTRIES = `
with first as (
  select position, at_ms from job_changes
   where position > (select pruned_to from job_log) order by position limit $2
), younger as (
  select min(position) as position from first where at_ms between $1 and $3
)
select max(first.position) as "upTo"
  from first, younger
 where first.at_ms < $1 and (younger.position is null or first.position < younger.position)`;

const RAISE_BEGINNING = "update job_log set pruned_to = $1 where pruned_to < $1";

const ENTRIES = `
select position, case change when 'DELETED' then job_uid end as gone
  from job_changes
 where position > $1 and position <= (select pruned_to from job_log)
 order by position limit $2`;

const DELETE_REQUESTS = `
with old as (
  select namespace, request_id from request_ids where job_uid = any($1::uuid[])
   order by namespace, request_id
     for update
)
delete from request_ids where (namespace, request_id) in (select namespace, request_id from old)`;

const DELETE_ENTRIES = `
with old as (
  select id from job_changes where position between $1 and $2 order by id for update
)
delete from job_changes where id in (select id from old)`;

/**
 * Deletes a page of events that are older than `beforeMs`, and as many that were stamped in the future before one of
 * these. `after`: the time of the last one that was deleted.
 */
export async function pruneEvents(db: Db, { beforeMs, nowMs, after, limit }: PrunePage): Promise<Pruned> {
  const deleted = await db.tx(async (tx) => {
    await tx.query(BY_INDEX);
    return tx.query<{ at_ms: number }>(PRUNE_EVENTS, [beforeMs, after, limit, nowMs + TOLERANCE_MS]);
  });
  const old = deleted.filter(({ at_ms: atMs }) => atMs < beforeMs);
  const last = maxOf(
    old.map(({ at_ms: atMs }) => atMs),
    after,
  );
  return { deleted: deleted.length, next: old.length < limit ? null : last };
}

const PRUNE_EVENTS = `
with page as (
  select id from job_events where at_ms >= $2 and at_ms < $1 order by at_ms limit $3
), ahead as (
  select id from job_events where at_ms > $4 and id < (select max(id) from page) order by at_ms limit $3
), old as (
  select id from job_events
   where id in (select id from page union select id from ahead)
   order by id
     for update
)
delete from job_events where id in (select id from old) returning at_ms`;
