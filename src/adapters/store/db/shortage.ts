/** Serves operators: says in `/readyz` what a database lacks that refuses work although it answers. */
import { type Shortage, ShortageError } from "../../../runtime/unavailable-error.ts";
import type { Db } from "./db.ts";

/** `isNow`: every write that needs room would fail. Else the shortage was seen lately. */
export type SeenShortage = { readonly shortage: Shortage; readonly isNow: boolean };

/** A database that remembers what it lacked. */
export type NotingDb = Db & {
  /** Null: it lacks nothing. Writes to find out, but only after a shortage was seen. */
  readonly shortage: () => Promise<SeenShortage | null>;
};

/** A shortage is said for this long after it was seen last: a lack of memory shows only now and then. */
const SAID_MS = 30_000;
/** A full disk counts for this long after it was seen last. Then a write says whether it still is. */
const FULL_MS = 5_000;

/** Passes everything on to the database. `onShortage` gets each shortage that a query or transaction has met. */
export function notingShortages(
  db: Db,
  ports: { readonly monotonicMs: () => number; readonly onShortage: (shortage: Shortage) => void },
): NotingDb {
  let seen: { readonly shortage: Shortage; readonly atMs: number } | null = null;
  let asking: Promise<SeenShortage | null> | null = null;
  const noting = <T>(work: Promise<T>): Promise<T> =>
    work.catch((error: unknown) => {
      if (error instanceof ShortageError) {
        seen = { shortage: error.shortage, atMs: ports.monotonicMs() };
        ports.onShortage(error.shortage);
      }
      throw error;
    });
  const ask = async (): Promise<SeenShortage | null> => {
    if (seen === null) return null;
    const { shortage, atMs } = seen;
    const agoMs = ports.monotonicMs() - atMs;
    if (shortage === "disk_full" && agoMs < FULL_MS) return { shortage, isNow: true };
    try {
      await db.query(TAKE_ROOM);
    } catch (error) {
      if (error instanceof ShortageError) return { shortage: error.shortage, isNow: true };
      // It is away, or this role may not make tables. The shortage that was seen last is all that is known.
    }
    if (agoMs < SAID_MS) return { shortage, isNow: false };
    seen = null;
    return null;
  };
  return {
    query: (text, params) => noting(db.query(text, params)),
    tx: (fn) => noting(db.tx(fn)),
    close: db.close,
    shortage: () => {
      asking ??= ask().finally(() => {
        asking = null;
      });
      return asking;
    },
  };
}

/** Makes a file and extends it, which needs room on the disk, and leaves nothing behind. */
const TAKE_ROOM = "create temporary table gangway_room on commit drop as select 1 as one";
