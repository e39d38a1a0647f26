import type { MigrationClient } from "./migrate.ts";

/**
 * How many epochs are left out after a restore or a fail-over: more than a domain opens in the time whose transactions
 * may be lost.
 */
export const EPOCHS_APART = 1_000;

/**
 * Begins a new incarnation of the log, and leaves out epochs, so that no fence is given again that was given before.
 * The parameter is the server that gives positions from now on; null: it is noted later.
 */
export const BEGIN_ANEW = `
with log as (
  update job_log set incarnation = left(md5(gen_random_uuid()::text), 10), server = $1::text
), domain as (
  select name from quota_domains order by name <> 'default', name for no key update
)
update quota_domains set epoch = epoch + ${EPOCHS_APART} where name in (select name from domain)`;

/** Tells a database that it was restored. No process uses it meanwhile. */
export async function markRestored(client: MigrationClient): Promise<void> {
  await client.query(BEGIN_ANEW, [null]);
}
