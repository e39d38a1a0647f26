import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";
import type { Db } from "../../../src/adapters/store/db/db.ts";
import type { Clock } from "../../../src/runtime/clock.ts";
import { createMember, type Member } from "../../../src/runtime/member.ts";
import { completeCapacity } from "../../support/complete-capacity.ts";
import { onEachDatabase } from "../../support/databases.ts";
import { freshStore, type TestStore } from "../db.ts";

const LEASE_MS = 9_000;

/** A clock that the test moves; each member has one of its own. */
class OwnClock implements Clock {
  atMs = Math.random() * 1e6;
  readonly nowMs = () => this.atMs;
  readonly monotonicMs = () => this.atMs;
  readonly sleep = async () => {};
}

onEachDatabase((openDb) => {
  let db: Db;
  let store: TestStore;
  before(async () => {
    db = await openDb();
  });
  after(() => db.close());
  beforeEach(async () => {
    store = (await freshStore(db)).store;
  });

  function member(name: string): { member: Member; clock: OwnClock } {
    const clock = new OwnClock();
    const options = {
      name,
      takesBuckets: true,
      leaseMs: LEASE_MS,
      onError: (error: unknown) => assert.fail(String(error)),
    };
    return { clock, member: createMember({ clock, store: store.members }, options) };
  }

  /** Moves both clocks. Only the members that look renew. */
  async function pass(clocks: readonly OwnClock[], ms: number, ...looking: readonly Member[]): Promise<void> {
    for (let passed = 0; passed < ms; passed += 1_000) {
      for (const clock of clocks) clock.atMs += 1_000;
      for (const one of looking) await one.look();
    }
  }

  test("of two members one holds the lease; the other takes it after a lease time of silence", async () => {
    const [a, b] = [member("a"), member("b")];
    const taken: string[] = [];
    const lease = { a: a.member.lease("l", () => taken.push("a")), b: b.member.lease("l", () => taken.push("b")) };
    await a.member.look();
    await b.member.look();
    assert.deepEqual([lease.a.epoch(), lease.b.epoch()], [1, null]);
    await pass([a.clock, b.clock], LEASE_MS - 1_000, b.member);
    assert.deepEqual(
      [lease.a.epoch(), lease.b.epoch()],
      [null, null],
      "the holder has stopped by its own clock before",
    );
    await pass([a.clock, b.clock], 2_000, b.member);
    assert.deepEqual([lease.a.epoch(), lease.b.epoch()], [null, 2]);
    assert.deepEqual(taken, ["a", "b"]);
    await a.member.look();
    await a.member.look();
    assert.equal(a.member.term()?.name, "a/2", "it comes back under another name");
    assert.equal(lease.a.epoch(), null);
  });

  test("a member that renews is never declared dead, however long it lives", async () => {
    const [a, b] = [member("a"), member("b")];
    await a.member.look();
    const term = a.member.term();
    await pass([a.clock, b.clock], LEASE_MS * 5, a.member, b.member);
    assert.equal(a.member.term(), term);
  });

  test("a member that could not look itself declares none dead: the silence may have been its own", async () => {
    const [a, b] = [member("a"), member("b")];
    await a.member.look();
    await b.member.look();
    b.clock.atMs += LEASE_MS * 10;
    await b.member.look();
    assert.equal((await store.members.renew("a/1")).alive, true);
  });

  test("the leases of a member that leaves are free at once", async () => {
    const [a, b] = [member("a"), member("b")];
    a.member.lease("l");
    const lease = b.member.lease("l");
    await a.member.look();
    await b.member.look();
    await a.member.leave();
    await b.member.look();
    assert.equal(lease.epoch(), 2);
    assert.equal(a.member.term(), null);
    await a.member.look();
    assert.equal(a.member.term(), null, "it does not come back");
  });

  test("after a moment of doubt a member has a new term, under the same epoch if no other took the lease", async () => {
    const { member: a, clock } = member("a");
    const lease = a.lease("l");
    await a.look();
    const term = a.term();
    clock.atMs += LEASE_MS * 0.7;
    assert.equal(a.term(), null);
    assert.equal(term?.signal.aborted, true);
    await a.look();
    assert.notEqual(a.term(), term);
    assert.equal(lease.epoch(), 1);
  });

  test("buckets of a living member are not taken; those of a dead one are, under a higher epoch", async () => {
    for (const name of ["a", "b"]) await store.members.join({ name, takesBuckets: true, leaseMs: LEASE_MS });
    const held = await store.worker.takeBuckets("a", [1, 2, 3]);
    assert.deepEqual(await store.worker.takeBuckets("b", [2, 3, 4]), [{ bucket: 4, epoch: 1 }]);
    await store.worker.giveBuckets("a", [3]);
    assert.deepEqual(await store.worker.takeBuckets("b", [2, 3]), [{ bucket: 3, epoch: 2 }]);
    await store.members.declareDead({ name: "a", counter: 7 });
    assert.deepEqual(await store.worker.takeBuckets("b", [1]), [], "it has renewed since it was seen");
    await store.members.declareDead({ name: "a", counter: 0 });
    const { workers, mine, free } = await store.worker.bucketsOf("b");
    assert.deepEqual([workers, mine.length, free.length], [["b"], 2, 1022]);
    const taken = await store.worker.takeBuckets("b", [1, 2]);
    assert.deepEqual(
      taken.map(({ epoch }) => epoch),
      held.slice(0, 2).map(({ epoch }) => epoch + 1),
    );
  });

  test("an observer that has lost its lease does not change a cluster's record", async () => {
    const epoch = await store.members.takeLease("observer/east", "one");
    await store.members.takeLease("observer/east", "two");
    const seen = completeCapacity("east", []);
    assert.deepEqual(await store.clusters.recordCapacity(seen, epoch ?? 0), { epoch: null, changed: false });
    assert.equal((await store.clusters.recordCapacity(seen, (epoch ?? 0) + 1)).changed, true);
  });
});
