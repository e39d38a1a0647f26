import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Db } from "../../src/adapters/store/db/db.ts";
import { openPglite } from "../../src/adapters/store/db/pglite.ts";

/** A database on disk, which is removed with the parts. */
export async function scratchDb(parts: AsyncDisposableStack): Promise<Db> {
  const directory = mkdtempSync(join(tmpdir(), "gangway-bench-"));
  parts.defer(() => rmSync(directory, { recursive: true, force: true }));
  const db = await openPglite(join(directory, "db"));
  parts.defer(() => db.close());
  return db;
}
