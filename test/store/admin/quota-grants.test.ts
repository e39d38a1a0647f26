import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";
import type { Db } from "../../../src/adapters/store/db/db.ts";
import type { QuotaGrant } from "../../../src/core/admin/quota-grant.ts";
import { onEachDatabase } from "../../support/databases.ts";
import { ledgerAt } from "../../support/ledger-at.ts";
import { snapshotOf } from "../../support/snapshot.ts";
import { NOW } from "../jobs.ts";
import { freshPlanner, type TestPlanner } from "../planner-fixture.ts";

const FLAVOR = "gpu/h100";
const GRANT: Omit<QuotaGrant, "atMs"> = {
  queue: "research",
  flavor: FLAVOR,
  amount: 4,
  untilMs: NOW + 1000,
  actor: "ann",
  reason: "deadline",
};

onEachDatabase((openDb) => {
  let db: Db;
  let planner: TestPlanner;
  before(async () => {
    db = await openDb();
  });
  after(() => db.close());
  beforeEach(async () => {
    planner = await freshPlanner(db);
  });
  const grant = (changes: Partial<QuotaGrant> = {}) => planner.store.admin.grantQuota({ ...GRANT, ...changes });
  const end = (nowMs: number) => ledgerAt(planner.store, nowMs).endGrants();
  const limits = async () => {
    const { version, queues } = await ledgerAt(planner.store).readLimits();
    return { version, ceiling: queues.find(({ queue, pool }) => queue === "research" && pool === FLAVOR)?.ceiling };
  };
  const audited = async () => {
    const filter = { actor: null, action: null, subject: "research" };
    const page = await planner.store.pools.listAudit({ pageSize: 3, after: null, filter });
    assert.ok(page !== "badCursor");
    return page.entries.map(({ action, actor, reason }) => [action, actor, reason]);
  };
  /** Asks the ledger for tokens of the queue at a time. */
  const take = async (amount: number, at: { readonly nowMs: number; readonly fence: bigint }) => {
    const [outcome] = await ledgerAt(planner.store, at.nowMs).commit(planner.quotaEpoch, [
      {
        holder: { kind: "caller", name: `caller-${at.fence}` },
        fence: BigInt(planner.quotaEpoch) * 2n ** 32n + at.fence,
        allocations: [
          {
            ...{ pool: FLAVOR, token: `t${at.fence}`, amount, project: "p", namespace: "n", queue: "research" },
            ...{ caps: { project: null, namespace: null }, leaseMs: null },
          },
        ],
      },
    ]);
    return outcome?.kind;
  };

  test("a grant raises the quota for ledger and planner until it ends, and leaves nothing but its record", async () => {
    const own = await limits();
    assert.ok(own.ceiling);
    const made = await grant();
    assert.deepEqual(made, { kind: "done", grant: { ...GRANT, atMs: NOW } });
    const raised = await limits();
    assert.equal(raised.ceiling, own.ceiling + 4);
    assert.ok(raised.version > own.version);
    const planned = (await snapshotOf(db)).queues.find(({ name }) => name === "research")?.quotas[0];
    assert.deepEqual([planned?.nominal, planned?.granted, planned?.grantedUntilMs], [own.ceiling, 4, NOW + 1000]);
    assert.deepEqual(await planner.store.admin.listGrants(null), [{ ...GRANT, atMs: NOW }]);
    assert.deepEqual(await end(NOW + 999), []);
    assert.deepEqual(await end(NOW + 1000), [{ ...GRANT, atMs: NOW }]);
    assert.deepEqual(await end(NOW + 1000), []);
    const ended = await limits();
    assert.equal(ended.ceiling, own.ceiling);
    assert.ok(ended.version > raised.version);
    assert.deepEqual(await planner.store.admin.listGrants("research"), []);
    assert.deepEqual((await audited()).slice(0, 2), [
      ["EndQuotaGrant", "system:gangway", ""],
      ["GrantQuota", "ann", "deadline"],
    ]);
  });

  test("from its end on the ledger grants nothing of it, though no process has ended it yet", async () => {
    const { ceiling = 0 } = await limits();
    await grant();
    assert.equal(await take(ceiling + 1, { nowMs: NOW + 999, fence: 1n }), "committed");
    assert.equal(await take(1, { nowMs: NOW + 1000, fence: 2n }), "over");
    assert.equal(await take(1, { nowMs: NOW + 999, fence: 3n }), "committed", "by a clock that is behind");
    await end(NOW + 1000);
    assert.equal(await take(1, { nowMs: NOW + 999, fence: 4n }), "over", "once ended, it never counts again");
  });

  test("another grant of the pool replaces the first; the same one again changes nothing", async () => {
    const { ceiling = 0 } = await limits();
    await grant();
    const once = await limits();
    await grant();
    assert.deepEqual(await limits(), once);
    await grant({ amount: 1, untilMs: NOW + 5000 });
    assert.equal((await limits()).ceiling, ceiling + 1);
    assert.deepEqual(await end(NOW + 1000), []);
  });

  test("an update of the queue keeps its grant; a revocation ends it; with the queue it is gone", async () => {
    const queue = await planner.store.admin.getQueue("research");
    assert.ok(queue);
    const { ceiling = 0 } = await limits();
    await grant();
    await planner.store.admin.updateQueue({ ...queue, version: 0 });
    assert.equal((await limits()).ceiling, ceiling + 4);
    const shown = await planner.store.admin.getQueue("research");
    assert.equal(shown?.quotas.find(({ flavor }) => flavor === FLAVOR)?.granted, 4);
    const revoked = { queue: "research", flavor: FLAVOR, actor: "bob" };
    assert.equal((await planner.store.admin.revokeGrant(revoked)).kind, "done");
    assert.equal((await limits()).ceiling, ceiling);
    assert.deepEqual(await planner.store.admin.revokeGrant(revoked), { kind: "noGrant" });
    assert.deepEqual((await audited())[0], ["RevokeQuotaGrant", "bob", ""]);
    await grant();
    await planner.store.admin.deleteQueue("research");
    assert.deepEqual(await planner.store.admin.listGrants(null), []);
  });

  test("nothing is granted to a queue that is not there, without a quota of the pool, or too much", async () => {
    assert.deepEqual(await grant({ queue: "nobody" }), { kind: "unknownQueue" });
    assert.deepEqual(await grant({ flavor: "gpu/none" }), { kind: "noQuota" });
    const { ceiling = 0 } = await limits();
    assert.deepEqual(await grant({ amount: 2 ** 53 - 1 }), { kind: "tooMuch", nominal: ceiling });
    assert.deepEqual(await planner.store.admin.listGrants(null), []);
  });
});
