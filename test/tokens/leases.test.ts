import assert from "node:assert/strict";
import { after, afterEach, before, beforeEach, test } from "node:test";
import type { Db } from "../../src/adapters/store/db/db.ts";
import type { RequestedAllocation } from "../../src/core/quota/calls.ts";
import { UnavailableError } from "../../src/runtime/unavailable-error.ts";
import { freshStore } from "../store/db.ts";
import { openMemoryDb } from "../support/databases.ts";
import { ledgerAt } from "../support/ledger-at.ts";
import { allocation, NO_WISHES, POOL, renewals } from "./manager.ts";
import { type VirtualServer, VirtualServers } from "./virtual-servers.ts";

const SECOND_MS = 1_000;
/** The pool's default lease. */
const LEASE_S = 60;
const QUOTA = 10;

let db: Db;
let world: VirtualServers;
/** Reaps, and serves no callers. */
let back: VirtualServer;
/** Serves callers. */
let front: VirtualServer;

before(async () => {
  db = await openMemoryDb();
});
after(() => db.close());
beforeEach(async () => {
  world = new VirtualServers((await freshStore(db)).store);
  back = await world.start({ answers: false });
  front = await world.start({ answers: true });
  await register({ quota: QUOTA, defaultLeaseMs: LEASE_S * SECOND_MS });
});
afterEach(() => world.stop());

const pass = (seconds: number) => world.time.pass(seconds * SECOND_MS);
const holds = (token = "t1", pool = POOL) => world.holds(token, pool);

const register = (wishes: Partial<Parameters<VirtualServer["manager"]["registerPool"]>[0]>) =>
  world.time.during(front.manager.registerPool({ name: POOL, ...NO_WISHES, ...wishes }, 0, "admin"));

const allocate = (overrides: Partial<RequestedAllocation> = {}, holder = "flyte") =>
  world.time.during(front.manager.allocate({ allocations: [allocation(overrides)], holder, priority: 0 }));

async function granted(overrides: Partial<RequestedAllocation> = {}) {
  const answer = await allocate(overrides);
  assert.ok(answer.kind === "granted", answer.kind);
  return answer;
}

async function renew(of: Parameters<typeof renewals>[1] = {}, at = front) {
  const [answer] = await world.time.during(renewals(at, of));
  return answer;
}

const asked = (seconds: number): RequestedAllocation["lease"] => ({ kind: "asked", ms: seconds * SECOND_MS });
const expired = () => back.reported.filter(({ event }) => event === "expired").map(({ facts }) => facts);

test("a holder without renewals loses its token, and others get the room; a holder that renews keeps it", async () => {
  await granted({ token: "t1", amount: 6 });
  await granted({ token: "t2", amount: 4 });
  await pass(40);
  assert.equal((await renew({ tokens: ["t2"] }))?.kind, "renewed");
  await pass(18);
  assert.deepEqual([await holds("t1"), await holds("t2")], [true, true]);
  await pass(4);
  assert.deepEqual([await holds("t1"), await holds("t2")], [false, true]);
  assert.deepEqual(expired(), [{ pool: POOL, tokens: 1 }]);
  await granted({ token: "t3", amount: 6 });
  assert.deepEqual(await renew(), { kind: "lost" });
});

test("no lease lapses during ten minutes in which no server answers", async () => {
  await granted();
  await pass(30);
  await front.stop();
  await pass(600);
  assert.ok(await holds());
  front = await world.start({ answers: true });
  await pass(25);
  assert.equal((await renew())?.kind, "renewed");
  await pass(58);
  assert.ok(await holds());
  await pass(4);
  assert.ok(!(await holds()));
});

test("rebuilt counters give every token a full lease", async () => {
  const { fence } = await granted();
  await pass(50);
  world.counters.lose();
  await assert.rejects(renew(), UnavailableError);
  await pass(50);
  assert.ok(await holds());
  const renewed = await renew();
  assert.ok(renewed?.kind === "renewed");
  assert.equal(renewed.fence, fence);
  await pass(62);
  assert.ok(!(await holds()), "the lease clock must advance after the failover");
});

test("while the domain cannot be opened, no lease is lost or reported as lost", async () => {
  await granted();
  await pass(59);
  world.counters.lose();
  world.isLedgerAway = true;
  for (let minute = 0; minute < 10; minute += 1) {
    await pass(60);
    await assert.rejects(renew(), UnavailableError);
  }
  world.isLedgerAway = false;
  await pass(50);
  assert.equal((await renew())?.kind, "renewed");
});

for (const jumpMs of [30_000, -30_000]) {
  test(`repeated jumps of the wall clocks by ${jumpMs / SECOND_MS} s make no lease shorter or longer`, async () => {
    await granted();
    for (let times = 0; times < 6; times += 1) {
      await pass(5);
      for (const { clock } of [front, back]) clock.offsetMs += jumpMs;
    }
    await pass(28);
    assert.ok(await holds());
    await pass(4);
    assert.ok(!(await holds()));
  });
}

test("a stalled reaper makes no lease shorter", async () => {
  await granted();
  await pass(10);
  back.stall(true);
  await pass(300);
  back.stall(false);
  await pass(45);
  assert.ok(await holds());
  await pass(10);
  assert.ok(!(await holds()), "the lease clock must continue where it stopped");
});

test("a reaper that takes over counts only its own time", async () => {
  await granted();
  await pass(10);
  await back.stop();
  await pass(300);
  world.reaping = front.number;
  await pass(45);
  assert.ok(await holds());
  await pass(10);
  assert.ok(!(await holds()));
});

test("a lease is lost only after the ledger has ended it, and then stays lost", async () => {
  await granted({ amount: QUOTA });
  await pass(58);
  world.isLedgerAway = true;
  await pass(4);
  await assert.rejects(renew(), UnavailableError, "the token has lapsed, but the ledger has not ended it");
  world.isLedgerAway = false;
  assert.deepEqual(await renew(), { kind: "lost" });
  assert.ok(!(await holds()));
  world.counters.lose();
  await pass(5);
  assert.deepEqual(await renew(), { kind: "lost" });
  await granted({ token: "t2", amount: QUOTA });
});

test("a lapsed lease that was not reported as lost is full again after a failover", async () => {
  await granted();
  await pass(58);
  world.isLedgerAway = true;
  await pass(4);
  world.counters.lose();
  world.isLedgerAway = false;
  await pass(50);
  assert.equal((await renew())?.kind, "renewed");
});

test("a job's tokens never lapse, even after a failover", async () => {
  const { epochs, counters } = await front.domain();
  const epoch = await epochs.openEpoch(0);
  const holder = { kind: "admission" as const, jobUid: "0198c5c0-0000-7000-8000-000000000001", admission: 1 };
  const allocations = [{ ...allocation({ token: "gang" }), leaseMs: null }];
  const grant = await counters.grant({ epoch, holder, allocations, priority: 0, waiter: null });
  assert.ok(grant.kind === "granted");
  const { fence } = grant;
  await ledgerAt(world.store, front.clock.nowMs()).commit(epoch, [{ allocations, holder, fence }]);
  await granted();
  await pass(300);
  world.counters.lose();
  await pass(300);
  assert.deepEqual([await holds("gang"), await holds("t1")], [true, false]);
});

test("a lease longer than its pool allows is refused, and a renewal with one such lease renews none", async () => {
  await register({ name: "ex:short", quota: 1, maxLeaseMs: LEASE_S * SECOND_MS });
  assert.equal((await allocate({ pool: "ex:short", lease: asked(61) })).kind, "leaseTooLong");
  await granted({ pool: "ex:short" });
  await granted();
  await pass(30);
  const tokens = [POOL, "ex:nothing", "ex:short"].map((pool) => ({ pool, token: "t1" }));
  const refused = front.manager.renew({ holder: "flyte", tokens, leaseMs: 61 * SECOND_MS });
  assert.deepEqual(await world.time.during(refused), { kind: "leaseTooLong", index: 2, maxLeaseMs: 60_000 });
  await pass(28);
  assert.deepEqual([await holds(), await holds("t1", "ex:short")], [true, true]);
  await pass(4);
  assert.deepEqual([await holds(), await holds("t1", "ex:short")], [false, false]);
});

test("in a pool without a default lease, a token lapses only if its request set a lease", async () => {
  await register({ defaultLeaseMs: 0 });
  const { allocations } = await granted();
  assert.equal(allocations[0]?.expireTimeMs, null);
  await granted({ token: "t2", lease: asked(30) });
  await pass(300);
  assert.deepEqual([await holds("t1"), await holds("t2")], [true, false]);
  const renewed = await renew();
  assert.ok(renewed?.kind === "renewed" && renewed.expireTimeMs === null);
  assert.equal((await renew({ leaseMs: 30_000 }))?.kind, "renewed");
  await pass(32);
  assert.ok(!(await holds()));
});
