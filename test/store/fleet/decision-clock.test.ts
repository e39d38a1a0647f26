import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";
import type { Db } from "../../../src/adapters/store/db/db.ts";
import { CLOCK_LEASE, readTime } from "../../../src/adapters/store/fleet/decision-clock.ts";
import { startClock } from "../../../src/compose/decision-clock.ts";
import type { DecisionClock } from "../../../src/runtime/decision-clock.ts";
import { createMember, type Member } from "../../../src/runtime/member.ts";
import { onEachDatabase } from "../../support/databases.ts";
import { SILENT, VirtualClocks, VirtualMachine } from "../../support/virtual-clocks.ts";
import { freshStore, type TestStore } from "../db.ts";

const LEASE_MS = 10_000;
const HOUR_MS = 3_600_000;

type Process = { readonly machine: VirtualMachine; readonly clock: DecisionClock; readonly member: Member };

onEachDatabase((openDb) => {
  let db: Db;
  let store: TestStore;
  let clocks: VirtualClocks;
  before(async () => {
    db = await openDb();
  });
  after(() => db.close());
  beforeEach(async () => {
    store = (await freshStore(db)).store;
    clocks = new VirtualClocks();
  });

  async function start(name: string): Promise<Process> {
    const machine = new VirtualMachine(clocks);
    const clock = machine.start(await readTime(db));
    const member = createMember(
      { clock, store: clocks.memberStore(store.members), kept: { clock, lease: CLOCK_LEASE } },
      { name, takesBuckets: false, leaseMs: LEASE_MS, onError: (error) => assert.fail(String(error)) },
    );
    await member.look();
    return { machine, clock, member };
  }

  /** Time passes, and these processes renew each second. */
  async function pass(ms: number, ...processes: readonly Process[]): Promise<void> {
    for (let passedMs = 0; passedMs < ms; passedMs += 1_000) {
      clocks.trueMs += 1_000;
      for (const { member } of processes) await member.look();
    }
  }

  const correctionMs = async () => (await readTime(db)).correctionMs;
  /** Decision time minus the true time, in whole seconds. */
  const ahead = (...processes: readonly Process[]) =>
    processes.map(({ clock }) => Math.round((clock.nowMs() - clocks.trueMs) / 1_000) + 0);

  test("the migration sets the correction to 0", async () => {
    const time = await readTime(db);
    assert.deepEqual([time.correctionMs, time.notedMs, time.isHeld], [0, 0, false]);
    assert.ok(time.databaseMs > 1_600_000_000_000);
  });

  test("one process notes what decisions owe to a stepped database, and all others decide by that", async () => {
    const [a, b] = [await start("a"), await start("b")];
    await pass(3_000, a, b);
    assert.equal(await correctionMs(), 0);
    clocks.databaseAheadMs = HOUR_MS;
    await pass(20_000, a, b);
    // In 20 s decisions have followed by at most 2 s.
    assert.ok((await correctionMs()) < -HOUR_MS + 2_500);
    assert.deepEqual(ahead(a, b), [2, 2]);
    const late = await start("late");
    assert.deepEqual(ahead(late), [2], "a process that starts decides by the same time");
    clocks.databaseAheadMs = 0;
    await pass(40_000, a, b, late);
    assert.deepEqual([await correctionMs(), ...ahead(a, b, late)], [0, 0, 0, 0]);
  });

  test("a process that takes the lease over goes on from its own clock, also after a step meanwhile", async () => {
    const [a, b] = [await start("a"), await start("b")];
    await pass(3_000, a, b);
    clocks.databaseAheadMs = -HOUR_MS;
    // The holder is silent until the other has declared it dead.
    await pass(LEASE_MS + 3_000, b);
    assert.deepEqual(ahead(b), [0]);
    await pass(20_000, b);
    assert.deepEqual(ahead(b), [-2]);
    assert.ok((await correctionMs()) > HOUR_MS - 5_000);
    await pass(3_000, b, a);
    clocks.databaseAheadMs = 0;
    await pass(60_000, b, a);
    assert.deepEqual(ahead(a, b), [0, 0], "the former holder follows under another name");
  });

  test("after a stop of everything the correction is kept, and the time meanwhile is the database's", async () => {
    const a = await start("a");
    await pass(3_000, a);
    clocks.databaseAheadMs = HOUR_MS;
    await pass(10_000, a);
    await a.member.leave();
    clocks.trueMs += HOUR_MS;
    const b = await start("b");
    assert.deepEqual(ahead(b), [1]);
    await b.member.leave();
    clocks.databaseAheadMs = -5 * HOUR_MS;
    const lastMs = b.clock.nowMs();
    const c = await start("c");
    assert.ok(c.clock.nowMs() > lastMs - HOUR_MS - 5_000, "decision time is at least that of the last note");
  });

  test("a member that others declared dead comes back at their time", async () => {
    const [a, b] = [await start("a"), await start("b")];
    await pass(3_000, a, b);
    // Its machine stands still, and none of its clocks tells.
    b.machine.tellsSleep = false;
    b.machine.slept(HOUR_MS);
    await pass(LEASE_MS + 3_000, a);
    clocks.trueMs += HOUR_MS - LEASE_MS;
    await a.member.look();
    await pass(3_000, a, b);
    assert.deepEqual(ahead(a, b), [0, 0]);
  });

  test("a process that starts waits a while for a current correction while the lease is held", async () => {
    const a = await start("a");
    await pass(3_000, a);
    let looks = 0;
    const starting = {
      ...new VirtualMachine(clocks).clocks,
      sleep: async () => {
        looks += 1;
        clocks.trueMs += 500;
      },
    };
    await startClock(db, { leaseMs: LEASE_MS, telemetry: SILENT, isAlone: false }, starting);
    assert.equal(looks, 6, "the real clock is far from the virtual one, so it is never current");
    await a.member.leave();
    await startClock(db, { leaseMs: LEASE_MS, telemetry: SILENT, isAlone: false }, starting);
    assert.equal(looks, 6, "no process holds the lease");
    const b = await start("b");
    looks = 0;
    const renewing = {
      ...starting,
      sleep: async () => {
        await starting.sleep();
        await b.member.look();
      },
    };
    await startClock(db, { leaseMs: LEASE_MS, telemetry: SILENT, isAlone: false }, renewing);
    assert.equal(looks, 26, "while others live, one of them takes the lease within a lease time");
  });
});
