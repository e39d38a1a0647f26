import { readdirSync } from "node:fs";
import { join } from "node:path";

/** What a migration needs of a connection; without parameters the text may hold several statements. */
export type MigrationClient = {
  readonly query: (text: string, params?: readonly unknown[]) => Promise<{ readonly rows: readonly unknown[] }>;
};

const MIGRATIONS = join(import.meta.dirname, "../../../migrations");
const TABLE = "migrations";

/** Runs the migrations that this database has not seen, all in one transaction. Loads the migration library only where one is due. */
export async function migrate(client: MigrationClient): Promise<void> {
  if (await isCurrent(client)) return;
  const { runner } = await import("node-pg-migrate");
  const quiet = () => {};
  await runner({
    // The runner tells a client from connection settings by its methods, and asks for more of it than it uses.
    dbClient: { query: run(client), connect: quiet, end: quiet, on: quiet } as never,
    dir: MIGRATIONS,
    migrationsTable: TABLE,
    direction: "up",
    singleTransaction: true,
    advisoryLockMode: "wait",
    logger: { debug: quiet, info: quiet, warn: quiet, error: quiet },
  });
}

/** The runner calls with text or `{ text, values }`. */
function run(client: MigrationClient) {
  return (query: string | { text: string; values?: readonly unknown[] }, values?: readonly unknown[]) =>
    typeof query === "string" ? client.query(query, values) : client.query(query.text, query.values);
}

async function isCurrent(client: MigrationClient): Promise<boolean> {
  const known = await client.query(`select to_regclass('${TABLE}') is not null as there`);
  if (!(known.rows[0] as { there: boolean }).there) return false;
  const done = await client.query(`select name from ${TABLE}`);
  const names = new Set(done.rows.map((row) => (row as { name: string }).name));
  return readdirSync(MIGRATIONS)
    .filter((file) => file.endsWith(".sql"))
    .every((file) => names.has(file.slice(0, -".sql".length)));
}
