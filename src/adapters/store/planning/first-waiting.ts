import type { PlanGang } from "../../../core/plan/model/plan-gang.ts";
import { type Db, readSnapshot } from "../db/db.ts";
import { AGEING, effectivePrioritySql } from "../jobs/effective-priority.ts";
import { type GangReading, readGangs } from "./read-gangs.ts";

/** The first waiting jobs of one queue, at most `max`. */
export type FirstOfQueue = { readonly queue: string; readonly max: number };

/** The gangs of these jobs, the oldest first. */
export function firstWaiting(
  db: Db,
  { queue, max, nowMs }: FirstOfQueue & { readonly nowMs: number },
  reading: GangReading,
): Promise<readonly PlanGang[]> {
  return readSnapshot(db, async (tx) => {
    const ages = (await tx.query(AGES, [queue])).length > 0;
    const first = ages
      ? { condition: FIRST_BY_AGEING, params: [queue, max, nowMs] }
      : { condition: FIRST_OF_QUEUE, params: [queue, max] };
    return readGangs(tx, first, reading);
  });
}

const AGES = `select 1 from queues q where q.name = $1 and ${AGEING} is not null`;

const FIRST_BY_AGEING = `
j.uid in (
  select j.uid from jobs j join queues q on q.name = j.queue
   where j.queue = $1 and j.phase = 'WAITING' and j.cancel is null and j.delete_ms is null
   order by ${effectivePrioritySql("$3::bigint")} desc, j.create_ms, j.uid limit $2
)`;

const FIRST_OF_QUEUE = `
j.uid in (
  select uid from jobs
   where queue = $1 and phase = 'WAITING' and cancel is null and delete_ms is null
   order by priority desc, create_ms, uid limit $2
)`;
