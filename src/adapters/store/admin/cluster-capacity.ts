/**
 * The capacity of clusters, an entry a row, so that an observer writes and a planner reads only what has changed. Each
 * entry has the number of its last change: numbers rise within a cluster, in the order of the commits. A complete
 * report begins a new epoch.
 */

import type { Silence, SilentClusters } from "../../../core/job/request/concerns.ts";
import {
  type CapacityEntry,
  capacityOf,
  type EntryChange,
  type EntryKey,
  entryKeyText,
} from "../../../core/plan/model/capacity-entry.ts";
import type { ClusterCapacity } from "../../../core/plan/model/snapshot.ts";
import { type Db, type Executor, json, storable } from "../db/db.ts";
import { holdsLease, observerLease } from "../fleet/leases.ts";

/** An observer's report of a cluster: see `CapacityReport`. */
export type SeenCapacity = { readonly cluster: string } & (
  | { readonly reachable: true; readonly since: number | null; readonly changes: readonly EntryChange[] }
  /** `sinceMs`: since when. Omitted: now. `unusable`: why it cannot be used, although it answers. Null: it may. */
  | { readonly reachable: false; readonly sinceMs?: number; readonly unusable?: string | null }
);

/**
 * `epoch`: that of the complete report that counts now; null if this one was not recorded, so that a complete one has
 * to follow. `changed`: the record of the cluster has changed.
 */
export type RecordedCapacity = { readonly epoch: number | null; readonly changed: boolean };

const NOT_RECORDED: RecordedCapacity = { epoch: null, changed: false };

/** Removed entries are remembered for so many changes. A reader that is further behind reads everything. */
const REMOVED_MAX = 10_000;

/**
 * Records what an observer saw. Refuses changes that do not follow the complete report that is recorded, and an
 * observer that has lost its lease. `leaseEpoch` omitted: only one observes.
 */
export async function recordCapacity(
  db: Db,
  seen: SeenCapacity,
  { nowMs, leaseEpoch }: { readonly nowMs: number; readonly leaseEpoch?: number },
): Promise<RecordedCapacity> {
  const { cluster } = seen;
  if (!seen.reachable) {
    const { sinceMs = nowMs, unusable = null } = seen;
    return { epoch: null, changed: await markUnreachable(db, cluster, { sinceMs, unusable }) };
  }
  const { since } = seen;
  const changes = storableChanges(seen.changes);
  return db.tx(async (tx) => {
    const lease = { name: observerLease(cluster), epoch: leaseEpoch ?? 0 };
    if (leaseEpoch !== undefined && !(await holdsLease(tx, lease))) return NOT_RECORDED;
    const [head] = await tx.query<Head>(RAISE, [cluster, since, changes.length, nowMs]);
    if (head === undefined) return NOT_RECORDED;
    if (since === null) await tx.query("delete from cluster_capacity where cluster = $1", [cluster]);
    await writeChanges(tx, { cluster, changes, first: head.sequence - changes.length + 1 });
    if (changes.some(({ entry }) => entry === null)) await tx.query(FORGET_REMOVED, [cluster, REMOVED_MAX]);
    return { epoch: head.epoch, changed: since === null || changes.length > 0 || !head.wasReachable };
  });
}

type Head = { readonly epoch: number; readonly sequence: number; readonly wasReachable: boolean };

/** Locks the cluster's row until the transaction ends, so that numbers are committed in their order. */
const RAISE = `
update clusters c
   set capacity_epoch = c.capacity_epoch + case when $2::bigint is null then 1 else 0 end,
       capacity_sequence = c.capacity_sequence + $3::bigint, capacity_ms = $4, reachable = true,
       silent_ms = null, unusable = null, silence_ms = 0, lost_ms = null, lost_fence = null,
       returning_ms = coalesce(c.returning_ms, case when c.lost_ms is not null then $4::bigint end),
       capacity = null, observed_ms = null
  from (select name, reachable from clusters where name = $1 for no key update) before
 where c.name = before.name and c.forgotten_ms is null and ($2::bigint is null or c.capacity_epoch = $2)
returning c.capacity_epoch as epoch, c.capacity_sequence as sequence, before.reachable as "wasReachable"`;

/** The changes as the database can store them. Names of a hostile cluster may differ in characters that it cannot. */
function storableChanges(changes: readonly EntryChange[]): readonly EntryChange[] {
  const byKey = new Map<string, EntryChange>();
  for (const { key, entry } of changes) {
    const storableKey: EntryKey = { kind: key.kind, name: storable(key.name) };
    byKey.set(entryKeyText(storableKey), { key: storableKey, entry });
  }
  return [...byKey.values()];
}

async function writeChanges(
  tx: Executor,
  of: { readonly cluster: string; readonly changes: readonly EntryChange[]; readonly first: number },
): Promise<void> {
  const { cluster, changes, first } = of;
  if (changes.length === 0) return;
  await tx.query(WRITE_CHANGES, [
    cluster,
    changes.map(({ key }) => key.kind),
    changes.map(({ key }) => key.name),
    changes.map((_change, at) => first + at),
    changes.map(({ entry }) => (entry === null ? null : json(entry))),
  ]);
}

const WRITE_CHANGES = `
insert into cluster_capacity (cluster, kind, name, sequence, entry)
select $1, kind, name, sequence, entry::json
  from unnest($2::text[], $3::text[], $4::bigint[], $5::text[]) as e (kind, name, sequence, entry)
on conflict (cluster, kind, name) do update set sequence = excluded.sequence, entry = excluded.entry`;

const FORGET_REMOVED = `
with floor as (
  update clusters set capacity_floor = greatest(capacity_floor, capacity_sequence - $2) where name = $1
  returning name, capacity_floor
)
delete from cluster_capacity e using floor
 where e.cluster = floor.name and e.entry is null and e.sequence <= floor.capacity_floor`;

/**
 * Marks a cluster that its observer cannot reach, or cannot use: no gang is admitted there until it can. True: that is
 * news.
 */
export async function markUnreachable(
  executor: Executor,
  cluster: string,
  { sinceMs, unusable }: { readonly sinceMs: number; readonly unusable: string | null },
): Promise<boolean> {
  const rows = await executor.query(MARK_UNREACHABLE, [cluster, sinceMs, unusable]);
  return rows.length === 1;
}

/** A cluster that says why it cannot be used answers, so its silence is over. What gangs left there is there still. */
const MARK_UNREACHABLE = `
update clusters
   set reachable = false, silent_ms = case when reachable then $2 else silent_ms end, unusable = $3,
       silence_ms = case when $3::text is null then silence_ms else 0 end,
       returning_ms = coalesce(
         returning_ms, case when $3::text is not null and lost_ms is not null then $2::bigint end
       ),
       lost_ms = case when $3::text is null then lost_ms end,
       lost_fence = case when $3::text is null then lost_fence end
 where name = $1 and (reachable or unusable is distinct from $3) returning 1`;

/** The clusters that do not answer, or cannot be used. */
export async function silentClusters(executor: Executor): Promise<SilentClusters> {
  const rows = await executor.query<{ readonly name: string } & Silence>(SILENT_CLUSTERS);
  return new Map(rows.map(({ name, ...silence }) => [name, silence]));
}

const SILENT_CLUSTERS = `
select name, silent_ms as "sinceMs", unusable, lost_ms as "lostMs"
  from clusters where not reachable and forgotten_ms is null`;

/** A place in the changes of a cluster's capacity. */
export type CapacityPlace = { readonly epoch: number; readonly sequence: number };

/**
 * A page of all entries of a cluster, in the order of their keys. The changes after the place of the first page
 * complete what the pages together hold. A page of another epoch voids those before it.
 */
export type CapacityPage = {
  readonly place: CapacityPlace;
  readonly entries: readonly CapacityEntry[];
  /** The key to read on from. Null: this is the last page. */
  readonly next: EntryKey | null;
};

/** Reads at most `limit` entries after a key. Null: the cluster is not known, or was never observed. */
export async function capacityPage(
  executor: Executor,
  cluster: string,
  { after, limit }: { readonly after: EntryKey | null; readonly limit: number },
): Promise<CapacityPage | null> {
  const rows = await executor.query<CapacityPlace & { readonly entry: CapacityEntry | null }>(PAGE, [
    cluster,
    after?.kind ?? "",
    after?.name ?? "",
    limit,
  ]);
  const [head] = rows;
  if (head === undefined) return null;
  const entries = rows.flatMap(({ entry }) => entry ?? []);
  const last = entries.at(-1);
  const next = entries.length < limit || last === undefined ? null : { kind: last.kind, name: storable(last.name) };
  return { place: { epoch: head.epoch, sequence: head.sequence }, entries, next };
}

const PAGE = `
select c.capacity_epoch as epoch, c.capacity_sequence as sequence, e.entry
  from clusters c
  left join lateral (
    select kind, name, entry from cluster_capacity
     where cluster = c.name and entry is not null and (kind, name) > ($2, $3)
     order by kind, name limit $4
  ) e on true
 where c.name = $1 and c.forgotten_ms is null and c.capacity_ms is not null
 order by e.kind, e.name`;

/** The next changes after a place, in order; `place` is that of the last one. */
export type CapacityStep = { readonly place: CapacityPlace; readonly changes: readonly EntryChange[] };

/**
 * Reads at most `limit` changes after a place. `behind`: the place is of an older epoch or too far back, so all entries
 * have to be read again. Null: the cluster is not known, or was never observed.
 */
export async function capacitySince(
  executor: Executor,
  cluster: string,
  { place, limit }: { readonly place: CapacityPlace; readonly limit: number },
): Promise<CapacityStep | "behind" | null> {
  const rows = await executor.query<ChangeRow>(CHANGES_SINCE, [cluster, place.epoch, place.sequence, limit]);
  const [head] = rows;
  if (head === undefined) return null;
  if (!head.follows) return "behind";
  const changes = rows.flatMap(({ kind, name, entry }) =>
    kind === null ? [] : [{ key: { kind, name: name ?? "" }, entry }],
  );
  return { place: { epoch: place.epoch, sequence: rows.at(-1)?.sequence ?? place.sequence }, changes };
}

type ChangeRow = {
  /** False: the changes after the place are not all there. */
  readonly follows: boolean;
  /** Null: there is no change. */
  readonly kind: CapacityEntry["kind"] | null;
  readonly name: string | null;
  readonly sequence: number | null;
  readonly entry: CapacityEntry | null;
};

const CHANGES_SINCE = `
select c.follows, e.kind, e.name, e.sequence, e.entry
  from (
    select name, capacity_epoch = $2 and $3 between capacity_floor and capacity_sequence as follows
      from clusters where name = $1 and forgotten_ms is null and capacity_ms is not null
  ) c
  left join lateral (
    select kind, name, sequence, entry from cluster_capacity
     where cluster = c.name and c.follows and sequence > $3
     order by sequence limit $4
  ) e on true
 order by e.sequence`;

/**
 * SQL of a cluster's entries as a JSON array, for the row `c` of clusters; null until an observer has recorded it. A
 * program of the version before writes the column `capacity`; it is newer than the entries while it is there.
 */
export const CAPACITY_ENTRIES = `
  case when c.capacity is null and c.capacity_ms is not null then (
    select coalesce(json_agg(e.entry order by e.kind, e.name), '[]') from cluster_capacity e
     where e.cluster = c.name and e.entry is not null
  ) end`;

/** The columns of a cluster that hold its capacity: `capacity`, and CAPACITY_ENTRIES as `entries`. */
export type CapacityColumns = {
  readonly capacity: ClusterCapacity | null;
  readonly entries: readonly CapacityEntry[] | null;
};

/** A row of a cluster with its capacity. */
export function withCapacity<Row extends CapacityColumns>({ entries, ...row }: Row): Omit<Row, "entries"> {
  return entries === null ? row : { ...row, capacity: capacityOf(entries) };
}
