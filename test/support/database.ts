import type { Db } from "../../src/adapters/store/db.ts";

/** Tables that a migration fills, and how they are put back. */
const KEPT: Readonly<Record<string, string>> = {
  quota_domains: "update quota_domains set epoch = 0",
  bucket_leases: "update bucket_leases set worker = '', epoch = 0 where worker <> '' or epoch <> 0",
  job_log: "update job_log set head = 0, pruned_to = 0",
  counters_holder: "update counters_holder set holder = '', counter = 0",
  installation: "",
  migrations: "",
};

const TABLES = "select tablename from pg_tables where schemaname = 'public' order by tablename";

/**
 * Empties every table, as after the migrations. By one statement, at whose end its foreign keys are checked; truncating some tables takes a real
 * server a hundred times as long.
 */
export async function emptyDatabase(db: Db): Promise<void> {
  const names = (await db.query<{ tablename: string }>(TABLES)).map(({ tablename }) => tablename);
  const deleted = names.filter((name) => !(name in KEPT)).map((name) => `deleted_${name} as (delete from ${name})`);
  await db.query(`with ${deleted.join(", ")} select 1`);
  for (const statement of Object.values(KEPT)) if (statement !== "") await db.query(statement);
}
