import type { Db } from "../../src/adapters/store/db/db.ts";

/** What a row of the ledger held after a write. */
type Write = {
  readonly tx: string;
  readonly row: number;
  readonly jobUid: string | null;
  readonly admission: number | null;
  /** 0: it is released. */
  readonly amount: number;
};

/** The live rows of a pool after a transaction. */
export type LedgerState = readonly Write[];

/** From now on notes what holders get and lose, in the transaction that writes it. */
export async function recordLedger(db: Db): Promise<void> {
  for (const statement of RECORD) await db.query(statement);
}

/**
 * The states of a pool after each transaction, in their order. Writers of a pool hold its lock until they commit, so
 * the order of the writes is that of the transactions; throws if the writes of two are mixed.
 */
export async function statesOf(db: Db, pool: string): Promise<readonly LedgerState[]> {
  const writes = await db.query<Write>(WRITES, [pool]);
  const live = new Map<number, Write>();
  const states: LedgerState[] = [];
  const done = new Set<string>();
  for (const [at, write] of writes.entries()) {
    if (done.has(write.tx)) throw new Error(`transaction ${write.tx} wrote beside another one`);
    if (write.amount > 0) live.set(write.row, write);
    else live.delete(write.row);
    if (writes[at + 1]?.tx === write.tx) continue;
    done.add(write.tx);
    states.push([...live.values()]);
  }
  return states;
}

const RECORD = [
  `create table ledger_history (
     id bigint generated always as identity, tx xid8 default pg_current_xact_id(), pool text, row_id bigint,
     job_uid uuid, admission int, amount bigint
   )`,
  `create function note_allocation() returns trigger language plpgsql as $$ begin
     insert into ledger_history (pool, row_id, job_uid, admission, amount) values
       (new.pool, new.id, new.job_uid, new.admission, case when new.released_ms is null then new.amount else 0 end);
     return null;
   end $$`,
  `create trigger note_grant after insert on allocations for each row execute function note_allocation()`,
  // A token is renewed, and its release told to the counters, without the lock.
  `create trigger note_change after update on allocations for each row
     when ((old.amount, old.released_ms, old.job_uid, old.admission)
       is distinct from (new.amount, new.released_ms, new.job_uid, new.admission))
     execute function note_allocation()`,
];

const WRITES = `
select tx::text as tx, row_id::float8 as row, job_uid as "jobUid", admission, amount::float8 as amount
  from ledger_history
 where pool = $1
 order by id`;
