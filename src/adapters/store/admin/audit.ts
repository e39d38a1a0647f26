/**
 * The audit log. An entry is written in the transaction of the change that it reports. What is known of the call is
 * that of the call which the running code serves.
 */
import type { AuditEntry, AuditNote, AuditPage, AuditQuery } from "../../../core/admin/audit.ts";
import { servedCall } from "../../../runtime/served-call.ts";
import { decodeCursor, encodeCursor } from "../db/cursor.ts";
import { type Db, type Executor, json, storable } from "../db/db.ts";
import { prepared } from "../db/prepared.ts";

/** The actor of changes that no caller has asked for. */
export const SERVICE = "system:gangway";

/** The entries that transactions have written so far, for `withAuditLog`. */
const written = new WeakMap<Executor, AuditEntry[]>();

/** A database that tells of each entry once its transaction has committed. */
export function withAuditLog(db: Db, onEntry: (entry: AuditEntry) => void): Db {
  return {
    ...db,
    tx: async (fn) => {
      let entries: AuditEntry[] = [];
      const result = await db.tx((tx) => {
        entries = [];
        written.set(tx, entries);
        return fn(tx);
      });
      for (const entry of entries) onEntry(entry);
      return result;
    },
  };
}

/** Writes entries. Within a transaction they are a part of it. */
export async function appendAudit(tx: Executor, ...notes: readonly AuditNote[]): Promise<void> {
  if (notes.length === 0) return;
  const rows = notes.map((note) => auditParams(tx, note));
  const columns = onlyColumns(rows);
  await tx.query(INSERT_AUDITS, columns);
}

/** The parameters of INSERT_AUDIT, which is to run in this transaction. */
export function auditParams(tx: Executor, note: AuditNote): readonly unknown[] {
  const entry = entryOf(note);
  written.get(tx)?.push(entry);
  const { timeMs, action, outcome, details } = entry;
  const texts = [entry.actor, entry.subject, entry.reason, entry.method, entry.peer, entry.rpc, entry.requestId];
  const [actor, subject, reason, method, peer, rpc, requestId] = texts.map(storable);
  return [timeMs, actor, action, subject, reason, json(details), method, peer, rpc, requestId, outcome];
}

/** What is known of the call goes to the entry; members of the note take the place of it. */
function entryOf(note: AuditNote): AuditEntry {
  const call = servedCall();
  const { subject: actor = SERVICE, method = "", peer = "", rpc = "", requestId = "" } = call ?? {};
  return { actor, method, peer, rpc, requestId, reason: "", outcome: "OK", ...note };
}

function onlyColumns(rows: readonly (readonly unknown[])[]): readonly unknown[][] {
  const [first = []] = rows;
  return first.map((_, at) => rows.map((row) => row[at]));
}

const COLUMNS = "at_ms, actor, action, subject, reason, details, method, peer, rpc, request_id, outcome";

/** Writes an entry. It may be a part of the statement that makes the change, whose first 11 parameters it then has. */
export const INSERT_AUDIT = `
insert into audit_entries (${COLUMNS}) values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)`;

const INSERT_AUDITS = prepared(`
insert into audit_entries (${COLUMNS})
select at_ms, actor, action, subject, reason, details::json, method, peer, rpc, request_id, outcome
  from unnest($1::bigint[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[],
              $9::text[], $10::text[], $11::text[]) with ordinality
       as e (at_ms, actor, action, subject, reason, details, method, peer, rpc, request_id, outcome, place)
 order by place`);

const ORDER = "audit";

/** Lists entries, the newest first. */
export async function listAudit(executor: Executor, query: AuditQuery): Promise<AuditPage | "badCursor"> {
  const key = query.after === null ? [null] : decodeCursor(query.after, ORDER, ["number"]);
  if (key === null) return "badCursor";
  const { actor, action, subject, rpc = null, sinceMs = null, untilMs = null } = query.filter;
  const texts = [actor, action, subject, rpc].map((text) => (text === null ? null : storable(text)));
  const params = [...texts, sinceMs, untilMs, key[0], query.pageSize + 1];
  const rows = await executor.query<AuditEntry & { id: number }>(LIST_AUDIT, params);
  const page = rows.slice(0, query.pageSize);
  const last = page.at(-1);
  return {
    entries: page.map(({ id: _, ...entry }) => entry),
    next: rows.length > page.length && last !== undefined ? encodeCursor(ORDER, [last.id]) : null,
  };
}

const LIST_AUDIT = `
select id, at_ms as "timeMs", actor, action, subject, reason, details, method, peer, rpc, request_id as "requestId",
       outcome
  from audit_entries
 where ($1::text is null or actor = $1) and ($2::text is null or action = $2) and ($3::text is null or subject = $3)
   and ($4::text is null or rpc = $4) and ($5::bigint is null or at_ms >= $5) and ($6::bigint is null or at_ms < $6)
   and ($7::bigint is null or id < $7)
 order by id desc limit $8`;
