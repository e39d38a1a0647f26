/**
 * The partitions of the audit log. Old entries leave with their partition. Two partitions may hold entries of any age:
 * the first one, with those from before there were partitions, and the default one. Old entries of these are deleted.
 */
import {
  type AuditPartition,
  dayAfter,
  lastEnd,
  nextPartition,
  outdatedPartition,
  type TimeRange,
} from "../../../core/admin/audit-partitions.ts";
import { type Db, type Executor, onlyRow } from "../db/db.ts";

/** The log waits for its writers at most so long. Other writers wait behind it meanwhile. */
const LOCK_TIMEOUT = "200ms";
/** A statement deletes this many entries at most, so that it holds its locks briefly. */
const DELETED_MAX = 1_000;
const FIRST = "audit_entries_first";
const DEFAULT = "audit_entries_default";

/** Makes the partitions of the coming time. Throws if a lock is not free soon; some may be made then. */
export async function makeAuditPartitions(
  db: Db,
  times: { readonly nowMs: number; readonly keptMs: number },
): Promise<void> {
  let lastEndMs = lastEnd(await readPartitions(db));
  for (let next = nextPartition(lastEndMs, times); next !== null; next = nextPartition(lastEndMs, times)) {
    lastEndMs = await makePartition(db, next);
  }
}

/** Makes the partition of a time that has none yet. Returns when the partition after it may begin. */
function makePartition(db: Db, range: TimeRange): Promise<number> {
  const { fromMs, endMs } = range;
  return maintain(db, async (tx) => {
    const last = lastEnd(await readPartitions(tx));
    // Another process has made it.
    if (last !== null && last > fromMs) return last;
    const { newest } = onlyRow(await tx.query<{ newest: number | null }>(NEWEST_STRAY, [fromMs, endMs]));
    // PostgreSQL makes no partition for entries that the default one has already.
    if (newest !== null) return dayAfter(newest);
    const name = `audit_entries_${fromMs}`;
    await tx.query(`create table ${name} (like audit_entries including constraints, primary key (id))`);
    // Not "create table … partition of", which would wait for all writers.
    await tx.query(`alter table audit_entries attach partition ${name} for values from (${fromMs}) to (${endMs})`);
    return endMs;
  });
}

const NEWEST_STRAY = `select max(at_ms) as newest from ${DEFAULT} where at_ms >= $1 and at_ms < $2`;

/** Drops a partition whose entries are all older. False: there is none. Throws if a lock is not free soon. */
export function dropAuditPartition(db: Db, beforeMs: number): Promise<boolean> {
  return maintain(db, async (tx) => {
    const outdated = outdatedPartition(await readPartitions(tx), beforeMs);
    if (outdated === null) return false;
    await tx.query(`drop table ${outdated.name}`);
    return true;
  });
}

/** Deletes old entries of the partitions that hold entries of any age, at most a thousand each. Returns how many. */
export function pruneAudit(db: Db, beforeMs: number): Promise<number> {
  return maintain(db, async (tx) => {
    const names = (await readPartitions(tx)).map(({ name }) => name);
    let deleted = 0;
    for (const table of [FIRST, DEFAULT].filter((name) => names.includes(name))) {
      deleted += onlyRow(await tx.query<{ count: number }>(pruneOf(table), [beforeMs, DELETED_MAX])).count;
    }
    return deleted;
  });
}

const pruneOf = (table: string) => `
with old as (
  select id from ${table}
   where id in (select id from ${table} where at_ms < $1 order by at_ms, id limit $2)
   order by id for update skip locked
), gone as (
  delete from ${table} e using old where e.id = old.id returning 1
)
select count(*) from gone`;

/** Runs a transaction that changes partitions, one after the other in all processes. */
function maintain<T>(db: Db, work: (tx: Executor) => Promise<T>): Promise<T> {
  return db.tx(async (tx) => {
    await tx.query("select 1 from installation for no key update");
    // Only from here on: no writer of the log waits while this waits for the row.
    await tx.query("select set_config('lock_timeout', $1, true)", [LOCK_TIMEOUT]);
    return work(tx);
  });
}

function readPartitions(executor: Executor): Promise<readonly AuditPartition[]> {
  return executor.query<AuditPartition>(PARTITIONS);
}

const PARTITIONS = `
select c.relname as name, substring(pg_get_expr(c.relpartbound, c.oid) from 'TO \\(''(\\d+)''\\)')::bigint as "endMs"
  from pg_inherits i join pg_class c on c.oid = i.inhrelid
 where i.inhparent = 'audit_entries'::regclass
 order by "endMs"`;
