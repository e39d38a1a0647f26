import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";
import type { Db, Executor } from "../../../src/adapters/store/db/db.ts";
import {
  CountersHeldError,
  type HoldOptions,
  holdCounters,
} from "../../../src/adapters/store/fleet/counters-holder.ts";
import { systemClock } from "../../../src/runtime/clock.ts";
import { emptyDatabase } from "../../support/database.ts";
import { onEachDatabase } from "../../support/databases.ts";

onEachDatabase((openDb) => {
  let db: Db;
  before(async () => {
    db = await openDb();
  });
  after(() => db.close());
  beforeEach(() => emptyDatabase(db));

  const options = (holder: string, given: Partial<HoldOptions> = {}): HoldOptions => ({
    holder,
    clock: systemClock(),
    onLost: (error) => assert.fail(error),
    onError: (error) => assert.fail(String(error)),
    renewMs: 5,
    leaseMs: 2_000,
    ...given,
  });

  /** A process' connection to the database, which ends with it. */
  function mortal(): { executor: Executor; kill: () => void } {
    let dead = false;
    return {
      executor: {
        query: async (text, params) => {
          if (dead) throw new Error("the process is dead");
          return db.query(text, params);
        },
      },
      kill: () => {
        dead = true;
      },
    };
  }

  test("a second process is refused with the reason, until the first has released the right", async () => {
    const first = await holdCounters(db, options("one"));
    await assert.rejects(holdCounters(db, options("two")), (error: Error) => {
      assert.ok(error instanceof CountersHeldError);
      assert.match(error.message, /process one counts tokens in its own memory, .*set REDIS_URL/);
      return true;
    });
    await first.release();
    const second = await holdCounters(db, options("two"));
    await second.release();
  });

  test("of many processes that start together, one gets the right", async () => {
    const starts = await Promise.allSettled(["a", "b", "c", "d"].map((name) => holdCounters(db, options(name))));
    const holds = starts.flatMap((start) => (start.status === "fulfilled" ? [start.value] : []));
    assert.equal(holds.length, 1);
    for (const start of starts) if (start.status === "rejected") assert.ok(start.reason instanceof CountersHeldError);
    await holds[0]?.release();
  });

  test("the right of a dead process is free after the lease time", async () => {
    const { executor, kill } = mortal();
    const failed = Promise.withResolvers<unknown>();
    const dead = await holdCounters(executor, options("one", { onError: failed.resolve }));
    kill();
    await failed.promise;
    const next = await holdCounters(db, options("two", { leaseMs: 50 }));
    assert.deepEqual(await db.query("select holder from counters_holder"), [{ holder: "two" }]);
    await next.release();
    await assert.rejects(dead.release(), /the process is dead/);
  });

  test("a process that was declared dead learns it once, and takes nothing back", async () => {
    const lost = Promise.withResolvers<Error>();
    const late = await holdCounters(db, options("one", { onLost: lost.resolve }));
    await db.query("update counters_holder set holder = 'two'");
    assert.match((await lost.promise).message, /process two/);
    await late.release();
    assert.deepEqual(await db.query("select holder from counters_holder"), [{ holder: "two" }]);
  });
});
