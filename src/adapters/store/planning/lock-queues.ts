import { haltOf, type QueueStop, type StoppableQueue } from "../../../core/plan/model/queue-stop.ts";
import type { Executor } from "../db/db.ts";

/**
 * Keeps these queues and all above them as they are until the transaction ends. Returns a function that tells what
 * stops each of them. So an admin who stops a queue waits for the admissions that are being recorded, and none follows.
 */
export async function lockQueues(tx: Executor, names: readonly string[]): Promise<(queue: string) => QueueStop | null> {
  const rows = await tx.query<StoppableQueue>(LOCK_QUEUES, [[...new Set(names)]]);
  const queues = new Map(rows.map((row) => [row.name, row]));
  const isMoving = rows.some(({ parent }) => parent !== null && !queues.has(parent));
  // Another transaction has put a queue below a parent that is not locked: nothing is admitted or evicted this time.
  return (queue) => (isMoving ? { queue, drains: false } : haltOf(queue, queues));
}

const LOCK_QUEUES = `
with recursive path as (
  select name, parent from queues where name = any($1::text[])
   union
  select q.name, q.parent from queues q join path p on q.name = p.parent
)
select name, parent, stop_policy as "stopPolicy", frozen as "freeze"
  from queues where name in (select name from path) order by name for share`;
