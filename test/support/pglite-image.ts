import { existsSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { PGlite } from "@electric-sql/pglite";
import { migrate } from "../../src/adapters/store/db/migrate.ts";
import { migrationsDigest } from "./postgres.ts";
import { sharedFolder } from "./shared-folder.ts";

/** The least that initdb allows. */
const LOG_FILE_MIB = 1;
const BUFFERS_MIB = 16;

/** Where the image of a migrated PGlite is kept, as a file in the form of tar or as a folder. A test makes it. */
export function imagePath(form: "tar" | "folder"): string {
  const name = `pglite-${pgliteVersion()}-${migrationsDigest()}`;
  return join(sharedFolder(), form === "tar" ? `${name}-slim.tar` : name);
}

/**
 * What an image leaves out, because each open copies it: the databases that new ones are made from, which nothing here
 * makes, and changes that a start would read again. Small buffers are enough for tests, and each open clears them.
 */
const SLIM = [
  `alter system set shared_buffers = '${BUFFERS_MIB}MB'`,
  "update pg_database set datistemplate = false where datname in ('template0', 'template1')",
  "drop database template0",
  "drop database template1",
  "checkpoint",
];

/** The image of a migrated PGlite in memory. The first test that asks makes it; all others only read it. */
export async function migratedImage(): Promise<Blob> {
  const file = imagePath("tar");
  return existsSync(file) ? new Blob([readFileSync(file)]) : await makeImage(file);
}

async function makeImage(file: string): Promise<Blob> {
  const pglite = await PGlite.create({ initDbStartParams: [`--wal-segsize=${LOG_FILE_MIB}`] });
  await migrate({
    query: async (text, params) =>
      params === undefined ? { rows: (await pglite.exec(text)).at(-1)?.rows ?? [] } : pglite.query(text, [...params]),
  });
  for (const statement of SLIM) await pglite.exec(statement);
  const image = await pglite.dumpDataDir("none");
  await pglite.close();
  const making = `${file}.${process.pid}`;
  writeFileSync(making, Buffer.from(await image.arrayBuffer()));
  renameSync(making, file);
  return image;
}

function pgliteVersion(): string {
  const text = readFileSync(join(import.meta.dirname, "../../package.json"), "utf8");
  return (JSON.parse(text) as { dependencies: Record<string, string> }).dependencies["@electric-sql/pglite"] ?? "";
}
