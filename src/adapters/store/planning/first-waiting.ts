import type { PlanGang } from "../../../core/plan/plan-gang.ts";
import { type Db, readSnapshot } from "../db/db.ts";
import { type GangReading, readGangs } from "./read-gangs.ts";

/** The first waiting jobs of one queue, at most `max`. */
export type FirstOfQueue = { readonly queue: string; readonly max: number };

/** The gangs of these jobs, the oldest first. */
export function firstWaiting(db: Db, { queue, max }: FirstOfQueue, reading: GangReading): Promise<readonly PlanGang[]> {
  return readSnapshot(db, (tx) => readGangs(tx, { condition: FIRST_OF_QUEUE, params: [queue, max] }, reading));
}

const FIRST_OF_QUEUE = `
j.uid in (
  select uid from jobs
   where queue = $1 and phase = 'WAITING' and cancel is null and delete_ms is null
   order by priority desc, create_ms, uid limit $2
)`;
