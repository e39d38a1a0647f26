import type { AuditEntry, AuditPage, AuditQuery } from "../../../core/quota/admin.ts";
import { decodeCursor, encodeCursor } from "../db/cursor.ts";
import { type Executor, json, storable } from "../db/db.ts";

export async function appendAudit(executor: Executor, entry: AuditEntry): Promise<void> {
  await executor.query(INSERT_AUDIT, auditParams(entry));
}

/** The parameters of INSERT_AUDIT. */
export function auditParams({ timeMs, actor, action, subject, reason, details }: AuditEntry): readonly unknown[] {
  return [timeMs, storable(actor), action, storable(subject), storable(reason), json(details)];
}

/** Writes an entry. It may be a part of the statement that makes the change, whose first parameters it then has. */
export const INSERT_AUDIT = `
insert into audit_entries (at_ms, actor, action, subject, reason, details) values ($1, $2, $3, $4, $5, $6)`;

const ORDER = "audit";

/** Lists entries, the newest first. */
export async function listAudit(executor: Executor, query: AuditQuery): Promise<AuditPage | "badCursor"> {
  const key = query.after === null ? [null] : decodeCursor(query.after, ORDER, ["number"]);
  if (key === null) return "badCursor";
  const { actor, action, subject } = query.filter;
  const rows = await executor.query<AuditEntry & { id: number }>(LIST_AUDIT, [
    actor === null ? null : storable(actor),
    action,
    subject === null ? null : storable(subject),
    key[0],
    query.pageSize + 1,
  ]);
  const page = rows.slice(0, query.pageSize);
  const last = page.at(-1);
  return {
    entries: page.map(({ id: _, ...entry }) => entry),
    next: rows.length > page.length && last !== undefined ? encodeCursor(ORDER, [last.id]) : null,
  };
}

const LIST_AUDIT = `
select id, at_ms as "timeMs", actor, action, subject, reason, details
  from audit_entries
 where ($1::text is null or actor = $1) and ($2::text is null or action = $2) and ($3::text is null or subject = $3)
   and ($4::bigint is null or id < $4)
 order by id desc limit $5`;
