import type { LogPlace } from "../../../core/job/request/event-log.ts";
import { BEGIN_ANEW } from "../db/begin-anew.ts";
import { type Db, type Executor, leaveToCommit, onlyRow } from "../db/db.ts";
import { prepared } from "../db/prepared.ts";

/** How many changes get their positions in one transaction. */
const BATCH = 5_000;

/**
 * `oldestMs`: the time of the oldest change that got a position. Null: none did. `more`: the batch was full, so that
 * others may wait.
 */
type Sequenced = {
  readonly head: LogPlace;
  readonly given: number;
  readonly oldestMs: number | null;
  readonly more: boolean;
};

/**
 * Gives committed changes without a position the next positions, in the order of their ids. Locks the head's row, so
 * that one transaction at a time does this; its second statement sees all positions that were given before. Looks
 * first, so that an idle log costs one read.
 *
 * Another server or timeline than the one that gave the last positions may have lost some of them, as may a log whose
 * head is before one that was seen. The transaction that gives positions checks this under the lock. Then it gives
 * none, and a new incarnation of the log begins first.
 */
export async function sequence(db: Db, known: LogPlace | null, batch = BATCH): Promise<Sequenced> {
  const look = onlyRow(await db.query<LogRow & { readonly waiting: boolean }>(LOOK));
  if (!look.waiting && isSame(look, known)) return { head: placeOf(look), given: 0, oldestMs: null, more: false };
  for (;;) {
    const giving = await db.tx(async (tx) => {
      const log = onlyRow(await tx.query<LogRow>(LOCK));
      if (!isSame(log, known)) return null;
      const rows = tx.query<GivenRow>(GIVE, [batch]);
      leaveToCommit(rows);
      return { rows };
    });
    if (giving === null) await noteServer(db, known);
    else return sequenced(onlyRow(await giving.rows), batch);
  }
}

/** Notes which server answers, or begins a new incarnation of the log. */
async function noteServer(db: Db, known: LogPlace | null): Promise<void> {
  await db.tx(async (tx) => {
    const log = onlyRow(await tx.query<LogRow>(LOCK));
    if (!isSame(log, known)) await tx.query(lostPositions(log, known) ? BEGIN_ANEW : NOTE_SERVER, [log.present]);
  });
}

function sequenced({ given, oldestMs, ...log }: GivenRow, batch: number): Sequenced {
  return { head: placeOf(log), given, oldestMs, more: given === batch };
}

type LogRow = {
  readonly head: number;
  readonly incarnation: string;
  /** The server that gave the last positions. Null: not known. */
  readonly server: string | null;
  /** The server that answers. Null: it does not tell. */
  readonly present: string | null;
};

type GivenRow = LogRow & Pick<Sequenced, "given" | "oldestMs">;

function placeOf({ incarnation, head }: LogRow): LogPlace {
  return { incarnation, position: head };
}

/** False: something about the log must be noted. */
function isSame(log: LogRow, known: LogPlace | null): boolean {
  return (log.present === null || log.present === log.server) && !wentBack(log, known);
}

function lostPositions(log: LogRow, known: LogPlace | null): boolean {
  const isOther = log.present !== null && log.server !== null && log.present !== log.server;
  return isOther || wentBack(log, known);
}

function wentBack(log: LogRow, known: LogPlace | null): boolean {
  return known !== null && known.incarnation === log.incarnation && known.position > log.head;
}

/** Which server answers is asked once more under the lock, if anything waits. */
const LOOK = prepared(`
select head, incarnation, server, waiting, case when not waiting then server_identity() end as present
  from job_log, lateral (select exists (select from job_changes where position is null) as waiting) w`);

const LOCK = "select head, incarnation, server, server_identity() as present from job_log for update";

const NOTE_SERVER = "update job_log set server = coalesce($1, server)";

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
select head + (select count(*) from given) as head, incarnation, server, null as present,
       (select count(*) from given) as given, (select min(at_ms) from given) as "oldestMs"
  from job_log`);

/** The newest position of the log. */
export async function logHead(executor: Executor): Promise<LogPlace> {
  return onlyRow(await executor.query<LogPlace>("select head as position, incarnation from job_log"));
}
