/** Tells the embedded database of a folder that the folder was put back from a copy. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { markRestored } from "../adapters/store/db/begin-anew.ts";
import { DirectoryHeldError } from "../adapters/store/db/directory-lock.ts";
import { SchemaError } from "../adapters/store/db/schema.ts";
import type { MigrationResult } from "../cli/shell/deps.ts";
import { openDirectory } from "./database.ts";

/** Opens the database of a folder, which migrates it. Refuses a folder without one, and one that a process uses. */
export async function markRestoredFolder(directory: string): Promise<MigrationResult> {
  if (!existsSync(join(directory, "db"))) {
    return { kind: "refused", message: `${directory} has no database: name the folder that was put back from a copy` };
  }
  await using parts = new AsyncDisposableStack();
  try {
    const db = await openDirectory(directory, parts);
    await markRestored({ query: async (text, params) => ({ rows: await db.query(text, params) }) });
    return { kind: "migrated", ran: [] };
  } catch (error) {
    if (error instanceof DirectoryHeldError || error instanceof SchemaError) {
      return { kind: "refused", message: error.message };
    }
    throw error;
  }
}
