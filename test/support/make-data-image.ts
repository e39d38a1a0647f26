/** Makes the folder of its argument, with a migrated PGlite. Another process may do the same meanwhile. */
import { existsSync, mkdtempSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { openPglite } from "../../src/adapters/store/db/pglite.ts";

const [, , image = ""] = process.argv;
const making = mkdtempSync(`${image}-`);
try {
  const db = await openPglite(join(making, "db"));
  await db.close();
  renameSync(join(making, "db"), image);
} catch (error) {
  if (!existsSync(image)) throw error;
} finally {
  rmSync(making, { recursive: true, force: true });
}
