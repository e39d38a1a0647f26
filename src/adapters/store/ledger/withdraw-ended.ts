import type { Db, Executor } from "../db/db.ts";
import { changeHeirs } from "./give-back.ts";
import { IS_NOMINEE } from "./name-heirs.ts";

/** How many nominations one call withdraws. The next call withdraws the others. */
const PAGE = 100;

/**
 * Withdraws nominations of a domain that have ended without their holds: a program of the version before
 * ended them, or their admission did not use all pools that they lacked. Returns the number of nominees.
 */
export async function withdrawEnded(db: Db, domain: string, nowMs: number): Promise<number> {
  const found = await ended(db, domain, null);
  if (found.length === 0) return 0;
  return db.tx(async (tx) => {
    await tx.query(LOCK_JOBS, [found]);
    // A second statement: a job may have become a nominee until it was locked.
    const withdrawn = await ended(tx, domain, found);
    await changeHeirs(tx, { named: [], withdrawn }, nowMs);
    return withdrawn.length;
  });
}

async function ended(executor: Executor, domain: string, of: readonly string[] | null): Promise<readonly string[]> {
  const rows = await executor.query<{ jobUid: string }>(ENDED, [domain, of, PAGE]);
  return rows.map(({ jobUid }) => jobUid);
}

const ENDED = `
select distinct h.job_uid as "jobUid"
  from token_heirs h join pools p on p.name = h.pool
 where p.domain = $1 and ($2::uuid[] is null or h.job_uid = any($2))
   and not (${IS_NOMINEE})
 order by h.job_uid limit $3`;

const LOCK_JOBS = "select 1 from jobs j where j.uid = any($1::uuid[]) order by j.uid for no key update";
