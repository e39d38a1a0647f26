import { after, describe } from "node:test";
import type { Db } from "../../src/adapters/store/db/db.ts";
import { openPglite } from "../../src/adapters/store/db/pglite.ts";
import { checkedDb, requireNoBreach } from "./locks/checked-db.ts";
import { migratedImage } from "./pglite-image.ts";
import { openTestPostgres, postgresServer } from "./postgres.ts";

const server = await postgresServer();

// The code under test may catch the error of a transaction and go on.
after(requireNoBreach);

/** Runs a suite on PGlite, and on PostgreSQL if a server answers. */
export function onEachDatabase(suite: (openDb: () => Promise<Db>) => void): void {
  describe("on PGlite", () => suite(openMemoryDb));
  if (server !== null) onPostgres(suite);
}

/** Runs a suite on PostgreSQL only: PGlite has one connection, which cannot show a race. */
export function onPostgres(suite: (openDb: () => Promise<Db>) => void): void {
  describe("on PostgreSQL", { skip: server === null }, () => suite(() => openTestPostgres(server ?? "")));
}

/** A migrated PGlite in memory. Loads the image of an earlier one, which takes a tenth of the time. */
export async function openMemoryDb(): Promise<Db> {
  return checkedDb(await openPglite(null, await migratedImage()));
}
