import { rmSync } from "node:fs";
import { join } from "node:path";
import type { Db } from "../../../src/adapters/store/db/db.ts";
import { openPglite } from "../../../src/adapters/store/db/pglite.ts";
import { openPostgres } from "../../../src/adapters/store/db/postgres.ts";
import { newDataFolder } from "../../support/data-folder.ts";
import { createDatabase, postgresOptions } from "../../support/postgres.ts";

/**
 * A database that is removed with the parts: one of its own on the server with this URL, as durable as that server is.
 * Null: an embedded one on disk.
 */
export async function scratchDb(parts: AsyncDisposableStack, server: string | null = null): Promise<Db> {
  if (server !== null) return (await scratchServerDb(parts, server)).db;
  const db = await embeddedDb(parts);
  parts.defer(() => db.close());
  return db;
}

async function embeddedDb(parts: AsyncDisposableStack): Promise<Db> {
  const directory = newDataFolder("gangway-bench-");
  parts.defer(() => rmSync(directory, { recursive: true, force: true }));
  return openPglite(join(directory, "db"));
}

/** A database of its own on a server, with the URL by which other processes reach it. */
export async function scratchServerDb(
  parts: AsyncDisposableStack,
  server: string,
): Promise<{ readonly db: Db; readonly url: string }> {
  const { url, drop } = await createDatabase(server, true);
  parts.defer(drop);
  const db = await openPostgres(postgresOptions(url));
  parts.defer(() => db.close());
  return { db, url };
}
