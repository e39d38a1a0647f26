import { type Db, type Executor, onlyRow } from "../db/db.ts";

/** How many changes get their positions in one transaction. */
const BATCH = 5_000;

/** `oldestMs`: the time of the oldest change that got a position. Null: none did. */
type Sequenced = { readonly head: number; readonly given: number; readonly oldestMs: number | null };

/**
 * Gives committed changes without a position the next positions, in the order of their ids. Locks the head's row, so
 * that one transaction at a time does this; its second statement sees all positions that were given before. Looks
 * first, so that an idle log costs one read.
 */
export async function sequence(db: Db): Promise<Sequenced> {
  const idle = onlyRow(await db.query<{ head: number; waiting: boolean }>(LOOK));
  if (!idle.waiting) return { head: idle.head, given: 0, oldestMs: null };
  return db.tx(async (tx) => {
    const before = onlyRow(await tx.query<{ head: number }>("select head from job_log for update")).head;
    const { given, oldestMs } = onlyRow(await tx.query<Omit<Sequenced, "head">>(GIVE, [before, BATCH]));
    if (given > 0) await tx.query("update job_log set head = $1", [before + given]);
    return { head: before + given, given, oldestMs };
  });
}

const LOOK = `
select head, exists (select from job_changes where position is null) as waiting from job_log`;

const GIVE = `
with next as (
  select id, $1::bigint + row_number() over (order by id) as position
    from (select id from job_changes where position is null order by id limit $2) waiting
), given as (
  update job_changes c set position = next.position from next where c.id = next.id returning c.at_ms
)
select count(*) as given, min(at_ms) as "oldestMs" from given`;

/** The newest position of the log. */
export async function logHead(executor: Executor): Promise<number> {
  return onlyRow(await executor.query<{ head: number }>("select head from job_log")).head;
}
