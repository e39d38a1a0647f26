import { after, afterEach, before, describe } from "node:test";
import type { Db } from "../../src/adapters/store/db/db.ts";
import { systemClock } from "../../src/runtime/clock.ts";
import { OwnRedis } from "../counters/own-redis.ts";
import { freshStore, type TestStore } from "../store/db.ts";
import { onEachDatabase, onPostgres } from "../support/databases.ts";
import { hasRedisServer } from "../support/redis-server.ts";
import { startManager, type TestManager } from "./manager.ts";

/** A manager of tokens and the empty store that it works on. */
type StartedManager = { readonly at: TestManager; readonly store: TestStore };

/**
 * Runs a suite with counters in this process on each database, and with counters in Redis on PostgreSQL. The suite
 * calls `start` before each test. The manager is closed after the suite's own hooks of each test.
 */
export function onEachManager(suite: (start: () => Promise<StartedManager>) => void): void {
  onEachDatabase((openDb) => withManagers(suite, openDb, null));
  onPostgres((openDb) => {
    describe("and Redis", { skip: !hasRedisServer() }, () => withManagers(suite, openDb, OwnRedis.start));
  });
}

function withManagers(
  suite: Parameters<typeof onEachManager>[0],
  openDb: () => Promise<Db>,
  startRedis: (() => Promise<OwnRedis>) | null,
): void {
  let redis: OwnRedis | null = null;
  let db: Db;
  let at: TestManager;
  before(async () => {
    db = await openDb();
    redis = (await startRedis?.()) ?? null;
  });
  after(async () => {
    await redis?.stop();
    await db.close();
  });
  suite(async () => {
    const { store } = await freshStore(db);
    const own = redis === null ? {} : { countersOf: redis.connect() };
    at = startManager({ ledgerOf: store.ledgerOf, store: store.pools, clock: systemClock(), ...own });
    return { at, store };
  });
  afterEach(async () => {
    await at.close();
    await redis?.disconnect();
  });
}
