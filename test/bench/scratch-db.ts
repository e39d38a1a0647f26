import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Db } from "../../src/adapters/store/db/db.ts";
import { migrateDatabase } from "../../src/adapters/store/db/migrate-server.ts";
import { openPglite } from "../../src/adapters/store/db/pglite.ts";
import { openPostgres } from "../../src/adapters/store/db/postgres.ts";
import { createEmptyDatabase, postgresOptions } from "../support/postgres.ts";

/**
 * A database that is removed with the parts: one of its own on the server with this URL, as durable as that server is.
 * Null: an embedded one on disk.
 */
export async function scratchDb(parts: AsyncDisposableStack, server: string | null = null): Promise<Db> {
  const db = server === null ? await embeddedDb(parts) : await serverDb(parts, server);
  parts.defer(() => db.close());
  return db;
}

async function embeddedDb(parts: AsyncDisposableStack): Promise<Db> {
  const directory = mkdtempSync(join(tmpdir(), "gangway-bench-"));
  parts.defer(() => rmSync(directory, { recursive: true, force: true }));
  return openPglite(join(directory, "db"));
}

async function serverDb(parts: AsyncDisposableStack, server: string): Promise<Db> {
  const { url, drop } = await createEmptyDatabase(server);
  parts.defer(drop);
  const options = postgresOptions(url);
  const migrated = await migrateDatabase({ url, connectTimeoutMs: options.connectTimeoutMs, offline: true });
  assert.equal(migrated.kind, "migrated");
  return openPostgres(options);
}
