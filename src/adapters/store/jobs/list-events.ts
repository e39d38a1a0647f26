import type { EventPage, EventQuery, ShownEvent } from "../../../core/job/event.ts";
import type { Refusal } from "../../../core/plan/plan-types.ts";
import { withHead } from "../../../core/plan/refuse.ts";
import { decodeCursor, encodeCursor } from "../db/cursor.ts";
import type { Executor } from "../db/db.ts";

/** Events of all jobs of a name, oldest first, also of jobs that are gone until their events are pruned. */
export async function listEvents(executor: Executor, query: EventQuery): Promise<EventPage | "notFound" | "badCursor"> {
  const key = query.after === null ? [0] : decodeCursor(query.after, "events", ["number"]);
  if (key === null) return "badCursor";
  const rows = await executor.query<ShownEvent & { readonly id: number }>(LIST_EVENTS, [
    query.namespace,
    query.name,
    key[0],
    Math.trunc(query.pageSize) + 1,
  ]);
  if (rows.length === 0 && !(await isKnown(executor, query))) return "notFound";
  const page = rows.slice(0, query.pageSize);
  const last = page.at(-1);
  return {
    events: page.map(({ id: _id, ...event }) => event),
    next: rows.length > query.pageSize && last !== undefined ? encodeCursor("events", [last.id]) : null,
  };
}

const LIST_EVENTS = `
select id, job_uid as "jobUid", version, type, reason, message, at_ms as "atMs"
  from job_events where namespace = $1 and name = $2 and id > $3
 order by id limit $4`;

async function isKnown(executor: Executor, which: Pick<EventQuery, "namespace" | "name">): Promise<boolean> {
  const rows = await executor.query(IS_KNOWN, [which.namespace, which.name]);
  return rows.length > 0;
}

const IS_KNOWN = `
select 1 from jobs where namespace = $1 and name = $2
union all
(select 1 from job_events where namespace = $1 and name = $2 limit 1)`;

/**
 * The planner's last refusal of a waiting job, and its time. That of a job behind the head of a strict queue has
 * everything that the head lacks. It is joined here, so that a change at the head is not written for all behind it.
 */
export async function refusalOf(
  executor: Executor,
  jobUid: string,
): Promise<{ readonly refusal: Refusal; readonly atMs: number } | null> {
  const [row] = await executor.query<RefusalRow>(REFUSAL_OF, [jobUid]);
  if (row === undefined) return null;
  const { refusal, head, at_ms: atMs } = row;
  return { refusal: head === null ? refusal : withHead(refusal, head), atMs };
}

type RefusalRow = { readonly refusal: Refusal; readonly head: Refusal | null; readonly at_ms: number };

const REFUSAL_OF = `
select r.refusal, r.at_ms, h.refusal as head
  from refusals r
  join jobs j on j.uid = r.job_uid
  left join refusals h on h.job_uid = (r.refusal->>'head')::uuid
 where r.job_uid = $1 and j.phase = 'WAITING'`;
