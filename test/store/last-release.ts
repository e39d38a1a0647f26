/** Databases as the last release leaves them, so that tests can show that this program upgrades them. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { PGlite } from "@electric-sql/pglite";
import type { MigrationClient } from "../../src/adapters/store/db/migrate.ts";
import { RELEASED } from "./migration-rules.ts";

const MIGRATIONS = join(import.meta.dirname, "../../migrations");

/** The migrations of the last release, in the order in which its runner ran them. */
export const RELEASED_NAMES = Object.keys(RELEASED).sort();

/**
 * The rows of an embedded service of the last release. Jobs `team/done` (succeeded), `team/held` (runs on eight H100)
 * and `team/next` (waits for two of them); caller `anonymous` holds token `query-17` of pool `ex:warehouse` and has
 * released `query-18`.
 */
const ROWS = join(import.meta.dirname, "last-release.jsonl");

type Row = { readonly table: string; readonly row: Readonly<Record<string, unknown>> };

/** Runs some migrations of the last release in this order, and records them as its runner did. */
export async function runReleased(client: MigrationClient, names: readonly string[] = RELEASED_NAMES): Promise<void> {
  await client.query(
    `create table if not exists migrations
       (id serial primary key, name varchar(255) not null, run_on timestamp not null)`,
  );
  for (const name of names) {
    await client.query(readFileSync(join(MIGRATIONS, `${name}.sql`), "utf8"));
    await client.query(`insert into migrations (name, run_on) values ('${name}', now())`);
  }
}

/**
 * Writes the rows of the last release into a database that has run all of its migrations or some. Leaves out tables,
 * columns, tokens of callers and sums that those migrations do not know yet.
 */
export async function fillReleased(client: MigrationClient): Promise<void> {
  const columns = await columnsOf(client);
  const knowsCallers = columns.get("allocations")?.includes("caller") === true;
  const rows = readFileSync(ROWS, "utf8").trimEnd().split("\n");
  const kept = rows.map((line) => JSON.parse(line) as Row).filter((row) => knowsCallers || isOfJobs(row));
  const tables = [...new Set(kept.map(({ table }) => table))].filter((table) => columns.has(table));
  for (const table of tables) {
    const names = (columns.get(table) ?? []).join(", ");
    const values = kept.filter((row) => row.table === table).map(({ row }) => row);
    await client.query(`delete from ${table}`);
    await client.query(
      `insert into ${table} (${names}) overriding system value
       select ${names} from json_populate_recordset(null::${table}, $1::json)`,
      [JSON.stringify(values)],
    );
  }
  const { rows: identities } = await client.query(IDENTITIES);
  for (const { table, column } of identities as { table: string; column: string }[]) {
    await client.query(
      `select setval(pg_get_serial_sequence('${table}', '${column}'), max(${column}))
         from ${table} having count(*) > 0`,
    );
  }
}

/** False for rows that only a database with tokens of callers can hold. */
function isOfJobs({ table, row }: Row): boolean {
  if (table === "allocations") return row["caller"] === null;
  if (table === "pools" || table === "allocation_sums") {
    const scopes = ["pool", "queue", undefined];
    return (row["pool"] ?? row["name"]) !== "ex:warehouse" && scopes.includes(row["scope"] as string);
  }
  return true;
}

async function columnsOf(client: MigrationClient): Promise<ReadonlyMap<string, readonly string[]>> {
  const { rows } = await client.query(COLUMNS);
  return new Map((rows as { table: string; columns: string[] }[]).map(({ table, columns }) => [table, columns]));
}

const COLUMNS = `
select table_name as table, json_agg(column_name order by ordinal_position) as columns
  from information_schema.columns where table_schema = 'public' and is_generated = 'NEVER' group by table_name`;

const IDENTITIES = `
select table_name as table, column_name as column
  from information_schema.columns where table_schema = 'public' and is_identity = 'YES'`;

/** PGlite as migrations use it. */
export function clientOf(pglite: PGlite): MigrationClient {
  return {
    query: async (text, params) => {
      if (params !== undefined) return pglite.query(text, [...params]);
      return { rows: (await pglite.exec(text)).at(-1)?.rows ?? [] };
    },
  };
}

/**
 * Everything that migrations make, as sorted lines: columns, constraints, indexes. The order of columns does not count,
 * since it depends on the order in which migrations ran.
 */
export async function schemaLines(client: MigrationClient): Promise<readonly string[]> {
  const { rows } = await client.query(SCHEMA_LINES);
  return (rows as { line: string }[]).map(({ line }) => line);
}

const SCHEMA_LINES = `
select concat_ws(' ', table_name, column_name, data_type, is_nullable, column_default, generation_expression) as line
  from information_schema.columns where table_schema = 'public'
union all
select concat_ws(' ', conrelid::regclass, conname, pg_get_constraintdef(oid))
  from pg_constraint where connamespace = 'public'::regnamespace and contype <> 'n'
union all
select indexdef from pg_indexes where schemaname = 'public'
 order by line`;
