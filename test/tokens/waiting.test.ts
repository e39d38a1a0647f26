import assert from "node:assert/strict";
import { after, afterEach, before, beforeEach, test } from "node:test";
import { inProcessCounters } from "../../src/adapters/counters/in-process/in-process-counters.ts";
import type { Db } from "../../src/adapters/store/db/db.ts";
import type { WaitAnswer } from "../../src/core/quota/calls.ts";
import type { Counters } from "../../src/core/quota/counters.ts";
import { systemClock } from "../../src/runtime/clock.ts";
import { OwnRedis } from "../counters/own-redis.ts";
import { freshStore, type TestStore } from "../store/db.ts";
import { waitUntil } from "../support/bounded.ts";
import { openMemoryDb } from "../support/databases.ts";
import { ledgerAt } from "../support/ledger-at.ts";
import { hasRedisServer } from "../support/redis-server.ts";
import { allocation, NO_WISHES, POOL, startManager, type TestManager } from "./manager.ts";

type Waiting = { readonly answers: readonly WaitAnswer[]; readonly ended: Promise<void>; readonly leave: () => void };

function waits(
  at: TestManager,
  token: string,
  options: { readonly amount?: number; readonly priority?: number } = {},
): Waiting {
  const answers: WaitAnswer[] = [];
  const stop = new AbortController();
  stops.push(stop);
  const { amount = 1, priority = 0 } = options;
  const request = { allocations: [allocation({ token, amount })], holder: token, priority };
  const run = async () => {
    for await (const answer of at.manager.wait(request, stop.signal)) answers.push(answer);
  };
  return { answers, ended: run(), leave: () => stop.abort() };
}

/** Stops every request that may still wait. */
let stops: AbortController[] = [];

const last = ({ answers }: Waiting) => answers.at(-1)?.kind;

const until = (holds: () => boolean | Promise<boolean>) =>
  waitUntil("the waiters are as expected", holds, { pollMs: 2 });

/** Runs the same tests on counters in this process and on two connections to one Redis. */
function suite(
  where: string,
  of: { readonly skip: boolean; readonly connect: () => Promise<(domain: string) => Promise<Counters>> },
): void {
  let db: Db;
  let store: TestStore;
  let here: TestManager;
  let there: TestManager;
  before(async () => {
    if (!of.skip) db = await openMemoryDb();
  });
  after(() => db?.close());
  beforeEach(async () => {
    if (of.skip) return;
    store = (await freshStore(db)).store;
    const connect = await of.connect();
    const start = () =>
      startManager({ ledgerOf: store.ledgerOf, store: store.pools, clock: systemClock(), countersOf: connect });
    here = start();
    there = start();
    await here.manager.registerPool({ name: POOL, ...NO_WISHES, quota: 1 }, 0, "admin");
    await (await there.domain()).epochs.openEpoch(5_000);
  });
  afterEach(async () => {
    for (const stop of stops) stop.abort();
    stops = [];
    await Promise.all([here?.close(), there?.close()]);
  });
  const options = { skip: of.skip };
  const holdAll = () =>
    here.manager.allocate({ allocations: [allocation({ token: "all" })], holder: "all", priority: 0 });
  const releaseAll = () =>
    here.manager.release([{ pool: POOL, token: "all", holder: "all", project: null, namespace: null }]);

  test(`a release in one process wakes a waiter in another, ${where}`, options, async () => {
    await holdAll();
    const one = waits(there, "one");
    await until(() => last(one) === "waiting");
    assert.deepEqual(
      one.answers.map((answer) => answer.kind === "waiting" && answer.position),
      [1],
    );
    await releaseAll();
    await one.ended;
    assert.equal(last(one), "granted");
    assert.deepEqual(
      (await ledgerAt(store).findLive([{ pool: POOL, token: "one" }])).map((row) => row.token),
      ["one"],
    );
  });

  test(`waiters are served by priority, then age, ${where}`, options, async () => {
    await holdAll();
    const first = waits(here, "first");
    await until(() => last(first) === "waiting");
    const second = waits(there, "second");
    await until(() => last(second) === "waiting");
    const urgent = waits(there, "urgent", { priority: 5 });
    await until(() => last(urgent) === "waiting");
    const order: string[] = [];
    for (const [name, one] of Object.entries({ first, second, urgent })) void one.ended.then(() => order.push(name));
    await releaseAll();
    for (const name of ["urgent", "first", "second"]) {
      await until(() => order.at(-1) === name);
      await here.manager.release([{ pool: POOL, token: name, holder: name, project: null, namespace: null }]);
    }
    assert.deepEqual(order, ["urgent", "first", "second"]);
  });

  test(`a cancelled waiter leaves the waiting line and holds nothing, ${where}`, options, async () => {
    await holdAll();
    const one = waits(there, "one");
    await until(() => last(one) === "waiting");
    one.leave();
    await one.ended;
    assert.deepEqual(await (await here.domain()).counters.waiting(), []);
    await releaseAll();
    assert.equal((await here.manager.getPool(POOL))?.used, 0);
  });

  test(`a request above the quota is answered with never, ${where}`, options, async () => {
    const one = waits(here, "one", { amount: 2 });
    await one.ended;
    assert.deepEqual(
      one.answers.map(({ kind }) => kind),
      ["never"],
    );
  });

  test(`a waiter is granted even if its offer is lost, ${where}`, options, async () => {
    await holdAll();
    const domain = await there.domain();
    const one = waits(there, "one");
    await until(() => last(one) === "waiting");
    domain.offers.stop();
    await releaseAll();
    await one.ended;
    assert.equal(last(one), "granted");
  });

  test(`waiters keep their order across a rebuild of the domain, ${where}`, options, async () => {
    await holdAll();
    const first = waits(here, "first");
    await until(() => last(first) === "waiting");
    const second = waits(there, "second");
    await until(() => last(second) === "waiting");
    const domain = await here.domain();
    const epoch = await domain.epochs.openEpoch(1_000);
    domain.epochs.lost(epoch, "lost by the test");
    await until(async () => (domain.epochs.current ?? epoch) > epoch && (await domain.counters.waiting()).length === 2);
    const allocation = (await domain.counters.waiting()).map(({ holder }) =>
      holder.kind === "caller" ? holder.name : "",
    );
    assert.deepEqual(allocation, ["first", "second"]);
    await releaseAll();
    await first.ended;
    assert.deepEqual([last(first), last(second)], ["granted", "waiting"]);
    second.leave();
    await second.ended;
  });
}

suite("on counters in memory", {
  skip: false,
  connect: async () => {
    const counters = inProcessCounters();
    return async () => counters;
  },
});

const skip = !hasRedisServer();
let redis: OwnRedis | null = null;
before(async () => {
  if (!skip) redis = await OwnRedis.start();
});
after(() => redis?.stop());
afterEach(() => redis?.disconnect());

suite("on one Redis", {
  skip,
  connect: async () => {
    const connect = redis?.connect();
    if (connect === undefined) throw new Error("Redis was not started");
    return connect;
  },
});
