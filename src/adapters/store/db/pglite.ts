import { PGlite, type Transaction, types } from "@electric-sql/pglite";
import { makeDirectory } from "../../../runtime/make-directory.ts";
import { ShortageError, UnavailableError } from "../../../runtime/unavailable-error.ts";
import { type Db, type Executor, withPending } from "./db.ts";
import { type DirectoryLock, lockDirectory } from "./directory-lock.ts";
import { parseInt8 } from "./int8.ts";
import { type MigrationClient, migrate, readSchema } from "./migrate.ts";
import { shortageOf, translated } from "./postgres-error.ts";
import { SchemaError, schemaAdvice, schemaFit } from "./schema.ts";

/**
 * Opens PGlite on a directory, or in memory for null, and migrates it. A database in memory may begin with the image of
 * a data directory. The directory is locked until `close`. Throws `DirectoryHeldError` while another process holds the
 * directory, and `SchemaError` if a later version of the program made its schema.
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
  const pglite = new GuardedPglite({
    dataDir: directory ?? "memory://",
    ...(image === undefined ? {} : { loadDataDir: image }),
    parsers: { [types.INT8]: parseInt8 },
  });
  await pglite.waitReady;
  await migratePglite(pglite).catch(async (error: unknown) => {
    await pglite.close();
    throw error;
  });
  let closing = false;
  const open = () => {
    if (closing) throw new UnavailableError("the database is closed");
    return pglite;
  };
  const translating = async <T>(run: () => Promise<T>): Promise<T> => {
    try {
      return await run();
    } catch (error) {
      throw translated(error);
    }
  };
  return {
    query: (text, params) => translating(() => executor(open()).query(text, params)),
    tx: (fn) =>
      translating(() =>
        open().transaction(async (transaction) => {
          const tx = withPending(executor(transaction));
          const result = await fn(tx);
          await tx.settled();
          return result;
        }),
      ),
    close: async () => {
      closing = true;
      if (!pglite.hasPanicked) await pglite.close();
      lock?.release();
    },
  };
}

/** The severity of an error after which a server ends. */
const ENDING = ["PANIC", "FATAL"];

/**
 * A PGlite that is not called again once it has panicked, for example because its disk has no room for the log of
 * changes: each later call would never return, and would stop this process. The next start recovers the database.
 */
class GuardedPglite extends PGlite {
  #panic: Error | null = null;

  get hasPanicked(): boolean {
    return this.#panic !== null;
  }

  override execProtocol(...of: Parameters<PGlite["execProtocol"]>) {
    return this.#noting(super.execProtocol(...of));
  }

  override execProtocolStream(...of: Parameters<PGlite["execProtocolStream"]>) {
    return this.#noting(super.execProtocolStream(...of));
  }

  override execProtocolRawSync(message: Uint8Array): Uint8Array {
    if (this.#panic !== null) {
      const why = shortageOf(this.#panic) ?? "io_error";
      throw new ShortageError(why, { cause: this.#panic, advice: "start the service again once that is repaired" });
    }
    return super.execProtocolRawSync(message);
  }

  /** Notes a panic before the caller learns of it. A query has several messages, so this makes no step in between. */
  #noting<T>(work: Promise<T>): Promise<T> {
    work.catch(this.#note);
    return work;
  }

  readonly #note = (error: unknown): void => {
    if (ENDING.includes((error as { readonly severity?: string }).severity ?? "")) this.#panic ??= error as Error;
  };
}

async function migratePglite(pglite: PGlite): Promise<void> {
  const client: MigrationClient = {
    query: async (text, params) => {
      if (params !== undefined) return pglite.query(text, [...params]);
      const results = await pglite.exec(text);
      return { rows: results.at(-1)?.rows ?? [] };
    },
  };
  const fit = schemaFit(await readSchema(client));
  // Nothing else uses this database, so a schema that is several versions behind may be migrated.
  if (fit.kind === "ahead") throw new SchemaError(schemaAdvice(fit) ?? "");
  if (fit.kind !== "fits") await migrate(client);
}

function executor(target: PGlite | Transaction): Executor {
  return {
    query: async <R>(text: string, params: readonly unknown[] = []) => {
      const results = await target.query<R>(text, [...params]);
      return results.rows;
    },
  };
}
