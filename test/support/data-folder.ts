import { spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { imagePath } from "./pglite-image.ts";

const MAKE = join(import.meta.dirname, "make-data-image.ts");

/**
 * A new folder in the system's temporary one for the data of an embedded service, whose database is migrated already:
 * making one takes ten times as long as copying it. The caller removes the folder. All of these databases have the same
 * id of an installation, so their services must not share a cluster.
 */
export function newDataFolder(prefix: string): string {
  const folder = mkdtempSync(join(tmpdir(), prefix));
  addDatabase(folder);
  return folder;
}

/** Adds a migrated database to a folder for data. */
export function addDatabase(folder: string): void {
  const image = imagePath("folder");
  if (!existsSync(image)) {
    const { status, stderr } = spawnSync(process.execPath, [MAKE, image], { encoding: "utf8" });
    if (status !== 0) throw new Error(`the image of a data folder was not made: ${stderr}`);
  }
  cpSync(image, join(folder, "db"), { recursive: true });
}
