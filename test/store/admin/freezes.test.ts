import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";
import type { Db } from "../../../src/adapters/store/db/db.ts";
import { onEachDatabase, onPostgres } from "../../support/databases.ts";
import { ledgerAt } from "../../support/ledger-at.ts";
import { gangOfPlanned } from "../../support/planned-gang.ts";
import { snapshotOf } from "../../support/snapshot.ts";
import { NOW, plannedFor } from "../jobs.ts";
import { freshPlanner, type TestPlanner } from "../planner-fixture.ts";

const FLAVOR = "gpu/h100";

function actions(fixture: () => TestPlanner) {
  const admin = () => fixture().store.admin;
  const pools = () => fixture().store.pools;
  return {
    freezeQueue: (name: string, reason: string | null = "audit") => admin().freezeQueue({ name, reason, actor: "ann" }),
    freezePool: (name: string, reason: string | null = "audit") => pools().freeze({ name, reason, actor: "ann" }),
  };
}

onEachDatabase((openDb) => {
  let db: Db;
  let planner: TestPlanner;
  const { freezeQueue, freezePool } = actions(() => planner);
  before(async () => {
    db = await openDb();
  });
  after(() => db.close());
  beforeEach(async () => {
    planner = await freshPlanner(db);
  });
  const limits = () => ledgerAt(planner.store).readLimits();
  const audited = async () => {
    const filter = { actor: "ann", action: null, subject: null };
    const page = await planner.store.pools.listAudit({ pageSize: 10, after: null, filter });
    assert.ok(page !== "badCursor");
    return page.entries.map(({ action, subject, reason }) => [action, subject, reason]);
  };

  test("a frozen queue freezes those below it, for the ledger and the planner; twice is as once", async () => {
    await planner.store.admin.createQueue({ name: "below", parent: "research", strategy: "STRICT_FIFO", quotas: [] });
    const before = await limits();
    const frozen = await freezeQueue("research");
    assert.ok(frozen.kind === "done");
    assert.deepEqual(frozen.record.freeze, { by: "ann", atMs: NOW, reason: "audit" });
    assert.equal(frozen.record.frozenBy, "research");
    assert.equal((await planner.store.admin.getQueue("below"))?.frozenBy, "research");
    const now = await limits();
    assert.ok(now.version > before.version);
    assert.ok(now.queues.length > 0 && now.queues.every(({ freeze }) => freeze?.by === "ann"));
    const { queues } = await snapshotOf(db);
    assert.equal(queues.find(({ name }) => name === "research")?.freeze?.reason, "audit");
    assert.deepEqual(await freezeQueue("research", "again"), frozen);
    const thawed = await freezeQueue("research", null);
    assert.ok(thawed.kind === "done" && thawed.record.freeze === null && thawed.record.frozenBy === null);
    assert.deepEqual((await limits()).queues, before.queues);
    assert.deepEqual(await audited(), [
      ["UnfreezeQueue", "research", ""],
      ["FreezeQueue", "research", "audit"],
    ]);
    assert.deepEqual(await freezeQueue("nobody"), { kind: "notFound" });
  });

  test("a frozen pool has no room in the ledger and the planner; its settings stay", async () => {
    const frozen = await freezePool(FLAVOR);
    assert.ok(frozen.kind === "done");
    assert.deepEqual(frozen.record.freeze, { by: "ann", atMs: NOW, reason: "audit" });
    assert.equal((await limits()).pools.find(({ pool }) => pool === FLAVOR)?.freeze?.by, "ann");
    assert.equal((await snapshotOf(db)).pools.find(({ pool }) => pool === FLAVOR)?.freeze?.by, "ann");
    assert.deepEqual(await freezePool(FLAVOR), frozen);
    await freezePool(FLAVOR, null);
    assert.equal((await limits()).pools.find(({ pool }) => pool === FLAVOR)?.freeze, undefined);
    assert.deepEqual(await audited(), [
      ["UnfreezePool", FLAVOR, ""],
      ["FreezePool", FLAVOR, "audit"],
    ]);
    assert.deepEqual(await freezePool("nothing"), { kind: "notFound" });
  });
});

onPostgres((openDb) => {
  test("once a queue or a pool is frozen, no admission that was under way is undone any more", async (t) => {
    const db = await openDb();
    t.after(() => db.close());
    const planner = await freshPlanner(db);
    const { freezeQueue, freezePool } = actions(() => planner);
    const queue = await planner.store.admin.getQueue("research");
    assert.ok(queue);
    await planner.store.admin.updateQueue({ ...queue, stopPolicy: "NONE", version: 0 });
    const met = { undone: 0, kept: 0 };
    for (let round = 0; round < 20; round += 1) {
      const job = await planner.submit();
      const planned = plannedFor(job, { allocations: [] });
      const gang = gangOfPlanned(planned, { queue: "research" });
      const records = [{ planned, gang, allocations: [], fence: null, chain: null }];
      const { quotaEpoch, plannerEpoch } = planner;
      const [{ admissions: count = 0 } = {}] = await db.query<{ admissions: number }>(
        "select admission_counter as admissions from clusters where name = 'east'",
      );
      const counters = new Map([["east", count]]);
      assert.deepEqual(
        await planner.store.planner.recordAdmissions({ records, counters, quotaEpoch, plannerEpoch, nowMs: NOW }),
        ["recorded"],
      );
      await planner.store.admin.updateQueue({ ...queue, stopPolicy: "HOLD_AND_DRAIN", version: 0 });
      const facts = { queue: "research", admission: 1, reason: "QueueStopped", message: "queue research is stopped" };
      const isUndone = async () => (await planner.load(job.uid)).status.eviction !== undefined;
      const freezing = (round % 2 === 0 ? freezeQueue("research") : freezePool(FLAVOR)).then(isUndone);
      const evict = () => planner.store.planner.recordEvictions([{ jobUid: job.uid, ...facts }], plannerEpoch, NOW);
      await Promise.all([freezing, evict()]);
      await evict();
      assert.equal(await isUndone(), await freezing, "nothing is undone after the call has returned");
      met[(await freezing) ? "undone" : "kept"] += 1;
      await freezeQueue("research", null);
      await freezePool(FLAVOR, null);
      if (!(await freezing)) assert.deepEqual(await evict(), [job.uid]);
      await planner.store.admin.updateQueue({ ...queue, stopPolicy: "NONE", version: 0 });
    }
    assert.ok(met.undone + met.kept === 20, JSON.stringify(met));
  });
});
