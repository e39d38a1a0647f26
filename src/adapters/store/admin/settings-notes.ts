/** Which settings of files have counted when, in the audit log. */
import type { Db } from "../db/db.ts";
import { appendAudit, SERVICE } from "./audit.ts";

export type ReadSettings = {
  /** The variable that names the file. */
  readonly variable: string;
  readonly file: string;
  /** Of the file's text. */
  readonly sha256: string;
  /** Null: they are too large for an entry. */
  readonly settings: unknown;
};

/**
 * Writes an entry, unless the newest one of this variable has the same text: several processes read one file. Processes
 * that read it at the same moment may both write one.
 */
export function noteSettings(db: Db, read: ReadSettings & { readonly nowMs: number }): Promise<void> {
  return db.tx(async (tx) => {
    const { variable, file, sha256, settings, nowMs } = read;
    const [last] = await tx.query<Last>(LAST_NOTE, [SERVICE, variable]);
    if (last?.sha256 === sha256) return;
    const details = { file, sha256, before: last?.settings ?? null, after: settings };
    await appendAudit(tx, { timeMs: nowMs, action: "ReadSettings", subject: variable, details });
  });
}

type Last = { readonly sha256: string; readonly settings: unknown };

const LAST_NOTE = `
select details->>'sha256' as sha256, details->'after' as settings
  from audit_entries where actor = $1 and action = 'ReadSettings' and subject = $2 order by id desc limit 1`;
