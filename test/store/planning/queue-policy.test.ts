import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";
import fc from "fast-check";
import type { Db } from "../../../src/adapters/store/db/db.ts";
import { DEFAULT_POLICY, type QueuePolicy } from "../../../src/core/plan/model/queue-policy.ts";
import { FleetFollower } from "../../../src/planner/fleet-follower.ts";
import { somePolicy } from "../../core/plan/policy-arbitraries.ts";
import { onEachDatabase } from "../../support/databases.ts";
import { ledgerAt } from "../../support/ledger-at.ts";
import { type TestStore, takePlannerLease } from "../db.ts";
import { FLAVOR, NOW } from "../jobs.ts";
import { allocation, freshLedger } from "../ledger-fixture.ts";

onEachDatabase((openDb) => {
  let db: Db;
  let store: TestStore;
  let grant: Awaited<ReturnType<typeof freshLedger>>["grant"];
  before(async () => {
    db = await openDb();
  });
  after(() => db.close());
  beforeEach(async () => {
    ({ store, grant } = await freshLedger(db));
  });

  const batch = { name: "batch", strategy: "STRICT_FIFO" as const, quotas: [] };
  const setPolicy = async (policy: QueuePolicy) => {
    const outcome = await store.admin.updateQueue({ ...batch, policy, version: 0 });
    assert.equal(outcome.kind, "done");
  };
  const storedPolicy = async () => {
    const [row] = await db.query<{ policy: unknown }>("select policy from queues where name = 'batch'");
    return row?.policy;
  };

  test("a queue keeps its policy; the default one takes no room", async () => {
    await store.admin.createQueue(batch);
    assert.deepEqual([(await store.admin.getQueue("batch"))?.policy, await storedPolicy()], [DEFAULT_POLICY, null]);
    await fc.assert(
      fc.asyncProperty(somePolicy({ isRoot: true }), async (policy) => {
        await setPolicy(policy);
        assert.deepEqual((await store.admin.getQueue("batch"))?.policy, policy);
      }),
      { numRuns: 15 },
    );
    await store.admin.updateQueue({ ...batch, version: 0 });
    assert.deepEqual([(await store.admin.getQueue("batch"))?.policy, await storedPolicy()], [DEFAULT_POLICY, null]);
  });

  test("a part that a stored policy does not have has its default", async () => {
    await store.admin.createQueue(batch);
    await db.query(`update queues set policy = '{"weight": 3}' where name = 'batch'`);
    assert.deepEqual((await store.admin.getQueue("batch"))?.policy, { ...DEFAULT_POLICY, weight: 3 });
  });

  test("the planner's state gets a policy with the queue, and each change of it", async () => {
    await takePlannerLease(store, "p1");
    const follower = new FleetFollower(store.planner);
    const followed = async () => {
      await follower.catchUp();
      return follower.planner.queueOf("batch")?.policy;
    };
    assert.equal(await followed(), undefined);
    await store.admin.createQueue(batch);
    assert.deepEqual(await followed(), DEFAULT_POLICY);
    for (const policy of fc.sample(somePolicy({ isRoot: true }), 5)) {
      await setPolicy(policy);
      assert.deepEqual(await followed(), policy);
    }
  });

  test("a queue tells what it has borrowed and lent, and its share", async () => {
    const gpus = (nominal: number) => [{ flavor: FLAVOR, resource: "nvidia.com/gpu", nominal }];
    await store.admin.createQueue({ ...batch, name: "all" });
    await store.admin.createQueue({ ...batch, parent: "all", quotas: gpus(6) });
    const preemptor = { ...batch, name: "taker", parent: "all", policy: { ...DEFAULT_POLICY, weight: 2 } };
    await store.admin.createQueue({ ...preemptor, quotas: gpus(2) });
    const useOf = async (name: string) => {
      const record = await store.admin.getQueue(name);
      assert.ok(record);
      const { used, borrowed, lent, share } = record;
      return { used, borrowed, lent, share };
    };
    assert.deepEqual(await useOf("taker"), { used: {}, borrowed: {}, lent: {}, share: 0 });
    await ledgerAt(store, NOW).commit(1, [grant([allocation({ pool: FLAVOR, amount: 5, queue: "taker" })])]);
    // Three of the eight that the tree could lend, in thousandths, by the weight.
    assert.deepEqual(await useOf("taker"), { used: { [FLAVOR]: 5 }, borrowed: { [FLAVOR]: 3 }, lent: {}, share: 188 });
    assert.deepEqual(await useOf("batch"), { used: {}, borrowed: {}, lent: { [FLAVOR]: 3 }, share: 0 });
    assert.deepEqual(await useOf("all"), { used: { [FLAVOR]: 5 }, borrowed: {}, lent: {}, share: 0 });
  });

  const audited = async () => {
    const page = await store.pools.listAudit({
      filter: { actor: null, action: null, subject: "batch" },
      pageSize: 100,
      after: null,
    });
    assert.ok(page !== "badCursor");
    return page.entries.map(({ timeMs, actor, action, subject, reason, details }) => {
      return { timeMs, actor, action, subject, reason, details };
    });
  };

  test("each change of a queue leaves who made it, and the settings before and after it", async () => {
    const quotas = [{ flavor: "gpu/b", resource: "nvidia.com/gpu", nominal: 4, lendingLimit: 1 }];
    await store.admin.createQueue({ ...batch, parent: "research", stopPolicy: "HOLD", quotas }, "ann");
    const policy = { ...DEFAULT_POLICY, weight: 2 };
    const lost = { onClusterLost: "WAIT" as const };
    await store.admin.updateQueue(
      { ...batch, policy, maxRunningJobs: 3, maxWaitingJobs: 7, ...lost, version: 1 },
      "bob",
    );
    await store.admin.deleteQueue("batch", "cleo");
    const made = {
      ...{ name: "batch", parent: "research", strategy: "STRICT_FIFO", stopPolicy: "HOLD", maxRunningJobs: null },
      ...{ maxWaitingJobs: null, policy: DEFAULT_POLICY, onClusterLost: null, quotas },
    };
    const changed = { ...made, parent: null, maxRunningJobs: 3, maxWaitingJobs: 7, policy, ...lost, quotas: [] };
    const of = { timeMs: NOW, subject: "batch", reason: "" };
    assert.deepEqual(await audited(), [
      { ...of, actor: "cleo", action: "DeleteQueue", details: { before: changed, after: null } },
      { ...of, actor: "bob", action: "UpdateQueue", details: { before: made, after: changed } },
      { ...of, actor: "ann", action: "CreateQueue", details: { before: null, after: made } },
    ]);
  });

  test("an update that changes nothing leaves no entry and no new version", async () => {
    const quotas = [{ flavor: "gpu/b", resource: "nvidia.com/gpu", nominal: 4, lendingLimit: 1 }];
    const policy: QueuePolicy = { ...DEFAULT_POLICY, weight: 2, ageing: { intervalMs: 60_000, step: 1, limit: 5 } };
    const made = { ...batch, parent: "research", stopPolicy: "HOLD" as const, quotas, policy, maxWaitingJobs: 7 };
    await store.admin.createQueue(made, "ann");
    const before = await store.admin.getQueue("batch");
    for (const same of [made, { ...batch, parent: "research", quotas, policy, maxWaitingJobs: 7 }]) {
      assert.deepEqual(await store.admin.updateQueue({ ...same, version: 1 }, "bob"), { kind: "done", record: before });
    }
    assert.deepEqual([await store.admin.getQueue("batch"), (await audited()).length], [before, 1]);
    const other = await store.admin.updateQueue({ ...made, quotas: [], version: 1 }, "bob");
    assert.deepEqual([other.kind, (await audited()).length], ["done", 2]);
    assert.equal((await store.admin.updateQueue({ ...made, quotas: [], version: 1 }, "bob")).kind, "stale");
  });

  test("a change of a queue that is refused leaves no entry", async () => {
    await store.admin.createQueue(batch, "ann");
    const refused = [
      store.admin.createQueue(batch),
      store.admin.updateQueue({ ...batch, version: 9 }),
      store.admin.updateQueue({ ...batch, parent: "batch", version: 0 }),
      store.admin.deleteQueue("nowhere"),
    ];
    for (const outcome of await Promise.all(refused)) assert.notEqual(outcome.kind, "done");
    assert.equal((await audited()).length, 1);
  });
});
