import { PGlite, type Transaction, types } from "@electric-sql/pglite";
import { makeDirectory } from "../../runtime/make-directory.ts";
import { UnavailableError } from "../../runtime/unavailable-error.ts";
import type { Db, Executor } from "./db.ts";
import { type DirectoryLock, lockDirectory } from "./directory-lock.ts";
import { parseInt8 } from "./int8.ts";
import { migrate } from "./migrate.ts";

/**
 * Opens PGlite on a directory, or in memory for null, and migrates it. The directory is locked until `close`;
 * throws `DirectoryHeldError` while another process holds it. One in memory may begin with the image of a data directory.
 */
export async function openPglite(directory: string | null, image?: Blob): Promise<Db> {
  if (directory === null) return start(null, null, image);
  makeDirectory(directory);
  const lock = lockDirectory(directory);
  try {
    return await start(directory, lock);
  } catch (error) {
    lock.release();
    throw error;
  }
}

async function start(directory: string | null, lock: DirectoryLock | null, image?: Blob): Promise<Db> {
  const pglite = await PGlite.create({
    dataDir: directory ?? "memory://",
    ...(image === undefined ? {} : { loadDataDir: image }),
    parsers: { [types.INT8]: parseInt8 },
  });
  await migrate({
    query: async (text, params) => {
      if (params !== undefined) return pglite.query(text, [...params]);
      const results = await pglite.exec(text);
      return { rows: results.at(-1)?.rows ?? [] };
    },
  });
  let closing = false;
  const open = () => {
    if (closing) throw new UnavailableError("the database is closed");
    return pglite;
  };
  return {
    query: async (text, params) => executor(open()).query(text, params),
    tx: async (fn) => open().transaction((tx) => fn(executor(tx))),
    close: async () => {
      closing = true;
      await pglite.close();
      lock?.release();
    },
  };
}

function executor(target: PGlite | Transaction): Executor {
  return {
    query: async <R>(text: string, params: readonly unknown[] = []) => {
      const results = await target.query<R>(text, [...params]);
      return results.rows;
    },
  };
}
