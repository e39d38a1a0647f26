import type { EventPage, EventQuery, ShownEvent } from "../../../core/job/event.ts";
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
