import type { Db } from "../../src/adapters/store/db/db.ts";

/** Tables that a migration fills, and the statements that restore them. */
const KEPT: Readonly<Record<string, string>> = {
  quota_domains:
    "with others as (delete from quota_domains where name <> 'default') " +
    "update quota_domains set epoch = 0, limits_version = 0, pruned_fence = 0, buried = false where name = 'default'",
  bucket_leases:
    "update bucket_leases set worker = '', epoch = 0, died_ms = null, alone = false " +
    "where worker <> '' or epoch <> 0",
  job_log: "update job_log set head = 0, pruned_to = 0",
  counters_holder: "update counters_holder set holder = '', counter = 0",
  decision_clock: "update decision_clock set correction_ms = 0, noted_ms = 0",
  installation: "",
  migrations: "",
};

/**
 * Larger tables are truncated or, if they are kept, vacuumed: old rows stay on their pages, PGlite never vacuums, and a
 * server does so too late for a test.
 */
const LARGE_BYTES = 262_144;
const TABLES = `
select relname as name, pg_table_size(oid) > ${LARGE_BYTES} as large
  from pg_class
 where relnamespace = 'public'::regnamespace and relkind = 'r' and pg_relation_size(oid) > 0 order by relname`;

/**
 * Restores every table to its state after the migrations. Mostly deletes rows: on a real server, truncating takes a
 * hundred times as long. Leaves out tables without pages, which have never had a row: most of the time would be to plan
 * their deletes.
 */
export async function emptyDatabase(db: Db): Promise<void> {
  const all = await db.query<{ name: string; large: boolean }>(TABLES);
  const tables = all.filter(({ name }) => !(name in KEPT));
  const large = all.filter((table) => table.large).map(({ name }) => name);
  const emptied = large.filter((name) => !(name in KEPT));
  if (emptied.length > 0) await db.query(`truncate ${emptied.join(", ")} cascade`);
  // One statement: foreign keys are checked at its end.
  const deleted = tables.map(({ name }) => `deleted_${name} as (delete from ${name})`);
  if (deleted.length > 0) await db.query(`with ${deleted.join(", ")} select 1`);
  for (const statement of Object.values(KEPT)) if (statement !== "") await db.query(statement);
  const vacuumed = large.filter((name) => name in KEPT);
  if (vacuumed.length > 0) await db.query(`vacuum analyze ${vacuumed.join(", ")}`);
}
