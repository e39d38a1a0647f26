import { type Db, type Executor, leaveToCommit, onlyRow } from "../db/db.ts";
import { prepared } from "../db/prepared.ts";

/** How many changes get their positions in one transaction. */
const BATCH = 5_000;

/**
 * `oldestMs`: the time of the oldest change that got a position. Null: none did. `more`: the batch was full, so that
 * others may wait.
 */
type Sequenced = {
  readonly head: number;
  readonly given: number;
  readonly oldestMs: number | null;
  readonly more: boolean;
};

/**
 * Gives committed changes without a position the next positions, in the order of their ids. Locks the head's row, so
 * that one transaction at a time does this; its second statement sees all positions that were given before. Looks
 * first, so that an idle log costs one read.
 */
export async function sequence(db: Db, batch = BATCH): Promise<Sequenced> {
  const idle = onlyRow(await db.query<{ head: number; waiting: boolean }>(LOOK));
  if (!idle.waiting) return { head: idle.head, given: 0, oldestMs: null, more: false };
  const { given } = await db.tx(async (tx) => {
    await tx.query("select head from job_log for update");
    const rows = tx.query<Omit<Sequenced, "more">>(GIVE, [batch]);
    leaveToCommit(rows);
    return { given: rows };
  });
  const sequenced = onlyRow(await given);
  return { ...sequenced, more: sequenced.given === batch };
}

const LOOK = prepared(`
select head, exists (select from job_changes where position is null) as waiting from job_log`);

/** Runs in a transaction that holds the row of the log, and so sees the head that the one before it has left. */
const GIVE = prepared(`
with next as (
  select id, (select head from job_log) + row_number() over (order by id) as position
    from (select id from job_changes where position is null order by id limit $1) waiting
), given as (
  update job_changes c set position = next.position from next where c.id = next.id returning c.at_ms
), moved as (
  update job_log set head = head + (select count(*) from given) where exists (select from given)
)
select head + (select count(*) from given) as head, (select count(*) from given) as given,
       (select min(at_ms) from given) as "oldestMs"
  from job_log`);

/** The newest position of the log. */
export async function logHead(executor: Executor): Promise<number> {
  return onlyRow(await executor.query<{ head: number }>("select head from job_log")).head;
}
