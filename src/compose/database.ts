/** Connects a process with its database: the one in a directory, or a PostgreSQL server. */
import { join } from "node:path";
import type { Db } from "../adapters/store/db/db.ts";
import { lockDirectory } from "../adapters/store/db/directory-lock.ts";
import { openPglite } from "../adapters/store/db/pglite.ts";
import { openPostgres } from "../adapters/store/db/postgres.ts";
import { requireSchema } from "../adapters/store/db/schema.ts";
import type { DatabaseConfig } from "../config/config.ts";
import { makePrivateDirectory } from "../runtime/make-directory.ts";
import type { Telemetry } from "../telemetry/events.ts";
import { recognizePooler } from "./pooler.ts";

/** Keeps other processes away from the directory, until the parts are closed, and other users for ever. */
export function holdDirectory(directory: string, parts: AsyncDisposableStack): void {
  makePrivateDirectory(directory);
  const lock = lockDirectory(join(directory, "db"));
  parts.defer(() => lock.release());
}

/** Opens the database in a directory, which it keeps other processes and other users away from. */
export async function openDirectory(directory: string, parts: AsyncDisposableStack): Promise<Db> {
  makePrivateDirectory(directory);
  const db = await openPglite(join(directory, "db"));
  parts.defer(() => db.close());
  return db;
}

export type OpenedDatabase = {
  readonly db: Db;
  /** What a pooler takes away, and what to set. Shown in `/readyz`. */
  readonly warnings: readonly string[];
};

/**
 * Opens a PostgreSQL server whose schema fits this program. Throws an error that says what to do if the schema does not
 * fit, or if calls would fail behind a pooler.
 */
export async function openServer(
  config: DatabaseConfig,
  telemetry: Telemetry,
  parts: AsyncDisposableStack,
): Promise<OpenedDatabase> {
  const pooler = await recognizePooler(config);
  if (pooler.kind === "refused") throw new Error(pooler.message);
  for (const warning of pooler.warnings) telemetry.databaseWarned({ warning });
  const { url, directUrl, poolMax, connectTimeoutMs, statementTimeoutMs, idleTimeoutMs } = config;
  const pooled = directUrl !== url;
  const onError = (error: unknown) => telemetry.loopFailed({ loop: "database connection", error });
  const db = await openPostgres({ url, pooled, poolMax, connectTimeoutMs, statementTimeoutMs, idleTimeoutMs, onError });
  parts.defer(() => db.close());
  await requireSchema(db);
  return { db, warnings: pooler.warnings };
}

/** Brings the schema of a server up to this program's. Returns the names of the migrations that ran. */
export async function migrateServer({ directUrl, connectTimeoutMs }: DatabaseConfig): Promise<readonly string[]> {
  const { migrateDatabase } = await import("../adapters/store/db/migrate-server.ts");
  const outcome = await migrateDatabase({ url: directUrl, connectTimeoutMs, offline: false });
  if (outcome.kind !== "migrated") throw new Error(outcome.message);
  return outcome.ran;
}
