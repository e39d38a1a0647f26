import type { Executor } from "../db/db.ts";

/**
 * Deletes asks that no job has. A job that was getting such an ask at this moment has lost it: then its gang is
 * computed again.
 */
export async function pruneAsks(executor: Executor): Promise<void> {
  await executor.query(PRUNE);
  await executor.query(FIND_LOST);
}

const PRUNE = "delete from asks a where not exists (select from jobs where ask_hash = a.hash)";

/** A gang without a version is out of date, see `planning/refresh-gangs`. */
const FIND_LOST = `
update jobs j set gang_version = null
 where j.completion_ms is null and j.gang_version is not null
   and not exists (select from asks where hash = j.ask_hash)`;
