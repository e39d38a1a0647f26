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

/** The correction of the dump says nothing of the clock of the server that the dump is restored to. */
const FOLLOW_DATABASE = "update decision_clock set correction_ms = 0";

/**
 * What the clusters have that the dump does not know is not deleted until each is adopted. No gang is admitted until
 * then: a gang that runs there unknown would run twice. Simulated clusters are in the same back-up.
 */
const HOLD_CLUSTERS = `
update clusters c
   set unadopted_ms = now.ms, returning_ms = coalesce(returning_ms, now.ms), version = version + 1
  from (select (extract(epoch from clock_timestamp()) * 1000)::bigint as ms) now
 where not simulated and forgotten_ms is null`;

/** Tells a database that it was restored. No process uses it meanwhile. */
export async function markRestored(client: MigrationClient): Promise<void> {
  await client.query(FOLLOW_DATABASE);
  await client.query(HOLD_CLUSTERS);
  await client.query(BEGIN_ANEW, [null]);
}
