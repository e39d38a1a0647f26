import type { KeptRefusal } from "../../../core/plan/explain/kept-reason.ts";
import type { PlanGang } from "../../../core/plan/model/plan-gang.ts";
import type { AmountInLine } from "../../../core/plan/model/plan-types.ts";
import { type Db, type Executor, readSnapshot } from "../db/db.ts";
import { type GangReading, readGangsOf } from "./read-gangs.ts";

/**
 * The kept refusal of a waiting job, and when it was kept. A job behind the head of a strict queue comes with the
 * refusal of the head: so a change at the head is not written for all behind it. Null: none is kept.
 */
export async function refusalOf(
  executor: Executor,
  jobUid: string,
): Promise<{ readonly refusal: KeptRefusal; readonly head: KeptRefusal | null; readonly atMs: number } | null> {
  const [row] = await executor.query<{ refusal: KeptRefusal; head: KeptRefusal | null; atMs: number }>(REFUSAL_OF, [
    jobUid,
  ]);
  return row ?? null;
}

const REFUSAL_OF = `
select r.refusal, h.refusal as head, r.at_ms as "atMs"
  from refusals r
  join jobs j on j.uid = r.job_uid
  left join refusals h on h.job_uid = (r.refusal->>'head')::uuid
 where r.job_uid = $1 and j.phase = 'WAITING'`;

/** The gang that stands in waiting lines of pools, beside callers, and what they keep for it. Null: none does. */
export async function gangInLine(
  executor: Executor,
): Promise<{ readonly jobUid: string; readonly inLine: readonly AmountInLine[] } | null> {
  const [row] = await executor.query<{ jobUid: string; inLine: readonly AmountInLine[] }>(GANG_IN_LINE);
  return row ?? null;
}

/** Written so that an index holds these rows. Until the planner has said why a former one waits, there may be two. */
const GANG_IN_LINE = `
select r.job_uid as "jobUid", r.refusal#>'{cause,inLine}' as "inLine"
  from refusals r
  join jobs j on j.uid = r.job_uid
 where r.refusal#>>'{cause,inLine,0,pool}' is not null and j.phase = 'WAITING'
 order by r.at_ms desc limit 1`;

/** The gangs of these jobs as they are now, also of those that do not wait any more. */
export function gangsNow(db: Db, uids: readonly string[], reading: GangReading): Promise<readonly PlanGang[]> {
  return readSnapshot(db, (tx) => readGangsOf(tx, uids, reading));
}
