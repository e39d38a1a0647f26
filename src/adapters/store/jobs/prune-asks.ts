import type { Executor } from "../db/db.ts";

/**
 * Deletes asks that no job has. A job that was getting such an ask at this moment has lost it: then its gang is
 * computed again.
 */
export async function pruneAsks(executor: Executor): Promise<void> {
  await executor.query(PRUNE);
  await executor.query(FIND_LOST);
}

const PRUNE = `
with unused as (
  select hash from asks a where not exists (select from jobs where ask_hash = a.hash) order by hash for update
)
delete from asks where hash in (select hash from unused)`;

/** A gang without a version is out of date, see `planning/refresh-gangs`. */
const FIND_LOST = `
with lost as (
  select uid from jobs j
   where j.completion_ms is null and j.gang_version is not null
     and not exists (select from asks where hash = j.ask_hash)
   order by uid
     for no key update of j
)
update jobs set gang_version = null where uid in (select uid from lost)`;
