import { readFileSync } from "node:fs";
import { join } from "node:path";
import { migrationsDigest } from "./postgres.ts";
import { sharedFolder } from "./shared-folder.ts";

/** Where the image of a migrated PGlite is kept, as a file in the form of tar or as a folder. A test makes it. */
export function imagePath(form: "tar" | "folder"): string {
  const name = `pglite-${pgliteVersion()}-${migrationsDigest()}`;
  return join(sharedFolder(), form === "tar" ? `${name}.tar` : name);
}

function pgliteVersion(): string {
  const text = readFileSync(join(import.meta.dirname, "../../package.json"), "utf8");
  return (JSON.parse(text) as { dependencies: Record<string, string> }).dependencies["@electric-sql/pglite"] ?? "";
}
