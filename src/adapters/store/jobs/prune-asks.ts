import type { Pruned, PrunePage } from "../../../core/job/request/event-log.ts";
import type { Db, Executor } from "../db/db.ts";
import { BY_INDEX } from "./prune-log.ts";

/** A note that a job had this ask and has it no more. */
type Note = {
  readonly id: number;
  readonly hash: string;
  /** A call before has deleted the ask. */
  readonly deleted: boolean;
  readonly known: boolean;
  readonly used: boolean;
};

/**
 * Deletes asks that no job has, by a page of the notes about them. A job that was getting such an ask at this moment
 * has lost it: so the note stays for another call, which lets that gang be computed again. `after`: the id of a note.
 */
export function pruneAsks(db: Db, { after, limit }: Omit<PrunePage, "beforeMs">): Promise<Pruned> {
  return db.tx(async (tx) => {
    await tx.query(BY_INDEX);
    const notes = await tx.query<Note>(NOTES, [after, limit]);
    const lost = hashesOf(notes, ({ used, known }) => used && !known);
    if (lost.length > 0) await tx.query(FIND_LOST, [lost]);
    const unused = hashesOf(notes, ({ used, known }) => known && !used);
    const deleted = unused.length === 0 ? [] : await tx.query<{ hash: string }>(DELETE_ASKS, [unused]);
    await settleNotes(tx, notes, new Set(deleted.map(({ hash }) => hash)));
    return { deleted: deleted.length, next: notes.length < limit ? null : (notes.at(-1)?.id ?? null) };
  });
}

function hashesOf(notes: readonly Note[], chosen: (note: Note) => boolean): readonly string[] {
  return [...new Set(notes.filter(chosen).map(({ hash }) => hash))];
}

/** Keeps one note for each ask that was deleted now, and removes the others. */
async function settleNotes(tx: Executor, notes: readonly Note[], deleted: ReadonlySet<string>): Promise<void> {
  const kept = new Map(notes.flatMap(({ hash, id }) => (deleted.has(hash) ? [[hash, id]] : [])));
  const ids = new Set(kept.values());
  const settled = notes.filter(({ id }) => !ids.has(id)).map(({ id }) => id);
  if (ids.size > 0) await tx.query(MARK_NOTES, [[...ids]]);
  if (settled.length > 0) await tx.query(DELETE_NOTES, [settled]);
}

/** The limits let each look read one row: a semi-join might read all jobs. */
const NOTES = `
select id, hash, deleted,
       (select true from asks where hash = n.hash) is not null as known,
       (select true from jobs where ask_hash = n.hash limit 1) is not null as used
  from unused_asks n where id > $1 order by id limit $2`;

const DELETE_ASKS = `
with unused as (
  select hash from asks a
   where hash = any($1::text[]) and (select true from jobs where ask_hash = a.hash limit 1) is null
   order by hash
     for update
)
delete from asks where hash in (select hash from unused) returning hash`;

/** A gang without a version is out of date, see `planning/refresh-gangs`. */
const FIND_LOST = `
with lost as (
  select uid from jobs j
   where j.ask_hash = any($1::text[]) and j.completion_ms is null and j.gang_version is not null
     and not exists (select from asks where hash = j.ask_hash)
   order by uid
     for no key update of j
)
update jobs set gang_version = null where uid in (select uid from lost)`;

const MARK_NOTES = `
with old as (select id from unused_asks where id = any($1::bigint[]) order by id for update)
update unused_asks set deleted = true where id in (select id from old)`;

const DELETE_NOTES = `
with old as (select id from unused_asks where id = any($1::bigint[]) order by id for update)
delete from unused_asks where id in (select id from old)`;
