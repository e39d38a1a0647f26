import { join } from "node:path";
import { type AppliedSchema, readRecord, SCHEMA_VERSIONS } from "./schema-versions.ts";

/** The part of a connection that migrations need. Without parameters the text may hold several statements. */
export type MigrationClient = {
  readonly query: (text: string, params?: readonly unknown[]) => Promise<{ readonly rows: readonly unknown[] }>;
};

const MIGRATIONS = join(import.meta.dirname, "../../../../migrations");
const TABLE = "migrations";

/**
 * Runs the migrations that this database has not run yet, all in one transaction, and returns their names. Loads the
 * migration library only if one is due.
 */
export async function migrate(client: MigrationClient): Promise<readonly string[]> {
  const { applied } = await readSchema(client);
  const known = new Set(applied);
  if (SCHEMA_VERSIONS.flat().every((name) => known.has(name))) return [];
  const { runner } = await import("node-pg-migrate");
  const quiet = () => {};
  const done = await runner({
    // The runner tells a client from connection settings by its methods, and its type asks for more than it uses.
    dbClient: { query: run(client), connect: quiet, end: quiet, on: quiet } as never,
    dir: MIGRATIONS,
    migrationsTable: TABLE,
    direction: "up",
    singleTransaction: true,
    // A migration that sorts before one that already ran is due, not an error. See schema-versions.ts.
    checkOrder: false,
    // If two processes migrate at once, the second waits and then finds nothing left to do.
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

/** Reads which migrations a database has run, and the version that it records. */
export async function readSchema(client: MigrationClient): Promise<AppliedSchema> {
  const { rows } = await client.query(FIND_TABLE);
  const { there, comment } = rows[0] as { there: boolean; comment: string | null };
  if (!there) return { applied: [], recordedVersion: null };
  const done = await client.query(`select name from ${TABLE} order by id`);
  return { applied: done.rows.map((row) => (row as { name: string }).name), recordedVersion: readRecord(comment) };
}

const FIND_TABLE = `
select to_regclass('${TABLE}') is not null as there, obj_description(to_regclass('${TABLE}'), 'pg_class') as comment`;
