import { readdirSync } from "node:fs";
import { join } from "node:path";

/** What a migration needs of a connection; without parameters the text may hold several statements. */
export type MigrationClient = {
  readonly query: (text: string, params?: readonly unknown[]) => Promise<{ readonly rows: readonly unknown[] }>;
};

const MIGRATIONS = join(import.meta.dirname, "../../../migrations");
const TABLE = "migrations";

/**
 * Runs the migrations that this database has not seen, all in one transaction, and returns their names. Loads the migration library only where
 * one is due.
 */
export async function migrate(client: MigrationClient): Promise<readonly string[]> {
  if (isCurrent(await appliedMigrations(client))) return [];
  const { runner } = await import("node-pg-migrate");
  const quiet = () => {};
  const done = await runner({
    // The runner tells a client from connection settings by its methods, and asks for more of it than it uses.
    dbClient: { query: run(client), connect: quiet, end: quiet, on: quiet } as never,
    dir: MIGRATIONS,
    migrationsTable: TABLE,
    direction: "up",
    singleTransaction: true,
    // Of two processes that migrate at once the second waits, and then finds nothing left to do.
    advisoryLockMode: "wait",
    logger: { debug: quiet, info: quiet, warn: quiet, error: quiet },
  });
  return done.map(({ name }) => name);
}

/** The runner calls with text or `{ text, values }`. */
function run(client: MigrationClient) {
  return (query: string | { text: string; values?: readonly unknown[] }, values?: readonly unknown[]) =>
    typeof query === "string" ? client.query(query, values) : client.query(query.text, query.values);
}

/** The names of the migrations that this program brings, in their order. */
export function ownMigrations(): readonly string[] {
  return readdirSync(MIGRATIONS)
    .filter((file) => file.endsWith(".sql"))
    .map((file) => file.slice(0, -".sql".length))
    .sort();
}

/** The names of the migrations that a database has seen; none where it has no schema of ours. */
export async function appliedMigrations(client: MigrationClient): Promise<readonly string[]> {
  const known = await client.query(`select to_regclass('${TABLE}') is not null as there`);
  if (!(known.rows[0] as { there: boolean }).there) return [];
  const done = await client.query(`select name from ${TABLE} order by id`);
  return done.rows.map((row) => (row as { name: string }).name);
}

function isCurrent(applied: readonly string[]): boolean {
  const names = new Set(applied);
  return ownMigrations().every((name) => names.has(name));
}
