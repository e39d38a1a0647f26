import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import pg from "pg";
import type { Db } from "../../src/adapters/store/db/db.ts";
import { migrateDatabase } from "../../src/adapters/store/db/migrate-server.ts";
import { openPostgres, type PostgresOptions } from "../../src/adapters/store/db/postgres.ts";
import { checkedDb } from "./locks/checked-db.ts";

/** Long, because a busy server answers late. If no server runs, the connection is refused at once. */
const CONNECT_MS = 60_000;
/** An advisory lock: tests create databases one after the other. */
const LOCK = 7_441_001;

/** The PostgreSQL server of TEST_DATABASE_URL or of the usual port. Null: none answers. */
export async function postgresServer(): Promise<string | null> {
  const url = process.env["TEST_DATABASE_URL"] ?? "postgres://postgres@127.0.0.1:5432/postgres";
  try {
    await onServer(url, (client) => client.query("select 1"));
    return url;
  } catch {
    return null;
  }
}

/** The address of another database of the same server. */
export function databaseUrl(server: string, name: string): string {
  const url = new URL(server);
  url.pathname = `/${name}`;
  return url.href;
}

/** A new migrated database with less durability, which tests do not need. `durable`: as durable as its server. */
export async function createDatabase(
  server: string,
  durable = false,
): Promise<{ url: string; drop: () => Promise<void> }> {
  const name = `gangway_test_${randomBytes(6).toString("hex")}`;
  await onServer(server, async (client) => {
    await client.query("select pg_advisory_lock($1)", [LOCK]);
    await client.query(`create database ${name} template ${await template(server, client)}`);
    if (!durable) await client.query(`alter database ${name} set synchronous_commit = off`);
  });
  return { url: databaseUrl(server, name), drop: () => dropDatabase(server, name) };
}

/** An empty database, without a schema, and with less durability. */
export async function createEmptyDatabase(server: string): Promise<{ url: string; drop: () => Promise<void> }> {
  const name = `gangway_test_${randomBytes(6).toString("hex")}`;
  await onServer(server, async (client) => {
    await client.query(`create database ${name}`);
    await client.query(`alter database ${name} set synchronous_commit = off`);
  });
  return { url: databaseUrl(server, name), drop: () => dropDatabase(server, name) };
}

export function postgresOptions(url: string): PostgresOptions {
  return {
    url,
    poolMax: 16,
    connectTimeoutMs: CONNECT_MS,
    statementTimeoutMs: 30_000,
    idleTimeoutMs: 10_000,
    onError: () => {},
  };
}

/** Opens a new migrated database, which is dropped when it is closed. */
export async function openTestPostgres(server: string): Promise<Db> {
  const { url, drop } = await createDatabase(server);
  const db = checkedDb(await openPostgres(postgresOptions(url)));
  return {
    ...db,
    close: async () => {
      await db.close();
      await drop();
    },
  };
}

function dropDatabase(server: string, name: string): Promise<void> {
  return onServer(server, async (client) => void (await client.query(`drop database if exists ${name} with (force)`)));
}

/**
 * The migrated database that others are copied from, named by a hash of its migrations. Drops those of other
 * migrations.
 */
async function template(server: string, client: pg.Client): Promise<string> {
  const name = `gangway_template_${migrationsDigest()}`;
  const names = await templates(client);
  if (names.includes(name)) return name;
  for (const old of names) await client.query(`drop database if exists ${old}`).catch(() => undefined);
  const making = `${name}_new`;
  await client.query(`drop database if exists ${making}`);
  await client.query(`create database ${making}`);
  const migrated = await migrateDatabase({
    url: databaseUrl(server, making),
    connectTimeoutMs: CONNECT_MS,
    offline: true,
  });
  assert.equal(migrated.kind, "migrated");
  await client.query(`alter database ${making} rename to ${name}`);
  return name;
}

/** Drops the databases that others were copied from, except one that another run is copying now. */
export async function dropTemplates(server: string): Promise<void> {
  await onServer(server, async (client) => {
    // Another run may be making one.
    await client.query("select pg_advisory_lock($1)", [LOCK]);
    for (const name of await templates(client))
      await client.query(`drop database if exists ${name}`).catch(() => undefined);
  });
}

async function templates(client: pg.Client): Promise<readonly string[]> {
  const found = await client.query<{ datname: string }>(
    "select datname from pg_database where datname like 'gangway\\_template\\_%'",
  );
  return found.rows.map(({ datname }) => datname);
}

/** A name for the schema that the migrations create. */
export function migrationsDigest(): string {
  const folder = join(import.meta.dirname, "../../migrations");
  const hash = createHash("sha256");
  for (const file of readdirSync(folder).sort()) hash.update(file).update(readFileSync(join(folder, file)));
  return hash.digest("hex").slice(0, 12);
}

export async function onServer<T>(url: string, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: CONNECT_MS });
  client.on("error", () => {});
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}
