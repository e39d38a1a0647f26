import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";
import type { Db } from "../../../src/adapters/store/db/db.ts";
import { isPoolShown } from "../../../src/core/quota/admin.ts";
import type { PoolChange } from "../../../src/core/quota/pools.ts";
import { onEachDatabase } from "../../support/databases.ts";
import { ledgerAt } from "../../support/ledger-at.ts";
import { freshStore, raiseQuotaEpoch, recordOne, type TestStore, takePlannerLease } from "../db.ts";
import { FLAVOR, NOW, newJob, plannedFor, sentOf } from "../jobs.ts";
import { allocation, caller, POOL, poolChange, releaseOf } from "../ledger-fixture.ts";

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

  const register = (changes: Partial<PoolChange> = {}, version = 0) =>
    store.pools.register(poolChange(changes), { version, actor: "admin" });
  const limitsVersion = async (domain = "default") => (await ledgerAt(store, 0, domain).readLimits()).version;

  async function audited(): Promise<number> {
    const page = await store.pools.listAudit({
      filter: { actor: "admin", action: "RegisterResourceQuota", subject: POOL },
      pageSize: 100,
      after: null,
    });
    return page === "badCursor" ? -1 : page.entries.length;
  }

  test("a pool is registered with defaults, read back, and audited with its actor", async () => {
    const outcome = await register({ quota: 5, maxLeaseMs: null });
    const pool = {
      name: POOL,
      quota: 5,
      projectDefault: null,
      namespaceDefault: null,
      queue: null,
      domain: "default",
      defaultLeaseMs: 3_600_000,
      maxLeaseMs: null,
      durability: "LEDGER",
    };
    const record = { ...pool, freeze: null, version: 1, createTimeMs: NOW, updateTimeMs: NOW, used: 0, tokens: 0 };
    assert.deepEqual(outcome, { kind: "done", record });
    assert.deepEqual(await store.pools.get(POOL), record);
    assert.deepEqual(await store.pools.find([POOL, "none"]), [pool]);
    assert.equal(await store.pools.get("none"), null);
    assert.equal(await audited(), 1);
  });

  test("a change keeps omitted settings, and a change without effect leaves no trace", async () => {
    await register({ quota: 5, projectDefault: 3, defaultLeaseMs: null, maxLeaseMs: 60_000 });
    const version = await limitsVersion();
    const same = await register({ quota: 5 });
    assert.ok(same.kind === "done" && same.record.version === 1);
    assert.deepEqual([await limitsVersion(), await audited()], [version, 1]);
    const changed = await register({ projectDefault: null });
    assert.ok(changed.kind === "done");
    const { quota, projectDefault, defaultLeaseMs, maxLeaseMs, version: at } = changed.record;
    assert.deepEqual([quota, projectDefault, defaultLeaseMs, maxLeaseMs, at], [5, null, null, 60_000, 2]);
    assert.deepEqual([await limitsVersion(), await audited()], [version + 1, 2]);
  });

  test("tokens of a new pool of which only the quota is given do not lapse; others stay as they are", async () => {
    const plain = await register({ quota: 5 });
    assert.ok(plain.kind === "done" && plain.record.defaultLeaseMs === null);
    const leased = await register({ name: "ex:leased", quota: 5, projectDefault: 1 });
    assert.ok(leased.kind === "done" && leased.record.defaultLeaseMs === 3_600_000);
    const again = await register({ name: "ex:leased", quota: 6 });
    assert.ok(again.kind === "done" && again.record.defaultLeaseMs === 3_600_000);
  });

  test("a default lease is never longer than the maximum lease", async () => {
    const made = await register({ quota: 1, maxLeaseMs: 1_000 });
    assert.ok(made.kind === "done");
    assert.equal(made.record.defaultLeaseMs, 1_000);
  });

  const refusals: Record<string, { change: Partial<PoolChange>; version?: number; outcome: unknown }> = {
    "at another version": { change: { quota: 1 }, version: 2, outcome: { kind: "stale" } },
    "in another domain": { change: { domain: "other" }, outcome: { kind: "fixed", field: "domain", is: "default" } },
    "with another durability": {
      change: { durability: "REDIS" },
      outcome: { kind: "fixed", field: "durability", is: "LEDGER" },
    },
    "for an unknown queue": { change: { queue: "none" }, outcome: { kind: "unknownQueue", name: "none" } },
    "of an unknown pool at a version": { change: { name: "new" }, version: 1, outcome: { kind: "notFound" } },
    "of a new pool with a queue in another domain": {
      change: { name: "new", domain: "other", queue: "research" },
      outcome: { kind: "fixed", field: "domain", is: "default" },
    },
    "of a new pool with a queue and durability REDIS": {
      change: { name: "new", durability: "REDIS", queue: "research" },
      outcome: { kind: "fixed", field: "durability", is: "LEDGER" },
    },
  };
  for (const [name, { change, version = 0, outcome }] of Object.entries(refusals)) {
    test(`a registration ${name} is refused and changes nothing`, async () => {
      await register({ quota: 5 });
      const before = await store.pools.get(POOL);
      assert.deepEqual(await register(change, version), outcome);
      assert.deepEqual(await store.pools.get(POOL), before);
      assert.equal(await store.pools.get("new"), null);
      assert.equal(await ledgerAt(store, NOW, "other").readDomain(), null);
      assert.equal(await audited(), 1);
    });
  }

  test("a registration above the maximum number of pools is refused", async () => {
    await db.query("insert into pools (name, domain) select 'p' || n, 'default' from generate_series(1, 10000) n");
    assert.deepEqual(await register({ quota: 1 }), { kind: "tooManyPools", poolsMax: 10_000 });
    assert.equal((await register({ name: "p1", quota: 1 })).kind, "done");
  });

  test("flavors of clusters and queues are pools: one too many is refused, and changes nothing", async () => {
    await db.query("insert into pools (name, domain) select 'p' || n, 'default' from generate_series(1, 9998) n");
    const flavors = ["a", "b"].map((name) => ({ name, resource: "nvidia.com/gpu", nodeLabels: {} }));
    const cluster = { name: "south", labels: {}, flavors, credentials: {} };
    const queue = {
      name: "q",
      strategy: "STRICT_FIFO" as const,
      quotas: flavors.map(({ name, resource }) => ({ flavor: name, resource, nominal: 1 })),
    };
    const refused = { kind: "tooManyPools", poolsMax: 10_000 };
    assert.deepEqual(await store.clusters.register(cluster), refused);
    assert.deepEqual(await store.admin.createQueue(queue), refused);
    assert.deepEqual([await store.admin.getCluster("south"), await store.admin.getQueue("q")], [null, null]);
    assert.equal((await store.clusters.register({ ...cluster, flavors: flavors.slice(0, 1) })).kind, "done");
    assert.deepEqual(await store.clusters.update({ ...cluster, credentials: null, version: 0 }), refused);
    assert.equal((await store.admin.getCluster("south"))?.flavors.length, 1);
    const upsert = () => store.clusters.simulate({ name: "north", labels: {}, flavors, besideReal: true });
    await assert.rejects(upsert(), /cluster north has flavors for more than 10000 pools/);
  });

  test("pools of all domains count", async () => {
    await register({ name: "far-pool", domain: "far", quota: 1 });
    await db.query("insert into pools (name, domain) select 'p' || n, 'far' from generate_series(1, 9998) n");
    assert.equal((await register({ name: "other", domain: "other", quota: 1 })).kind, "tooManyPools");
  });

  test("a domain starts with its first pool, and has separate limits for pools of durability REDIS", async () => {
    const version = await limitsVersion();
    await register({ name: "a", domain: "far", quota: 3 });
    await register({ name: "b", domain: "far", durability: "REDIS", quota: 4, namespaceDefault: 1 });
    assert.equal(await limitsVersion(), version);
    const fresh = { epoch: 0, limitsVersion: 2, settled: true, grantsDue: false };
    assert.deepEqual(await ledgerAt(store, NOW, "far").readDomain(), fresh);
    assert.deepEqual(await ledgerAt(store, NOW, "far~redis").readDomain(), fresh);
    const bounds = { tokensMax: 1_000_000, waitersMax: 10_000 };
    assert.deepEqual(await ledgerAt(store, 0, "far").readLimits(), {
      version: 2,
      pools: [{ pool: "a", quota: 3, projectDefault: null, namespaceDefault: null }],
      queues: [],
      ...bounds,
    });
    assert.deepEqual((await ledgerAt(store, 0, "far~redis").readLimits()).pools, [
      { pool: "b", quota: 4, projectDefault: null, namespaceDefault: 1 },
    ]);
    assert.deepEqual(await store.pools.listDomains(), [
      { domain: "default", durability: "LEDGER", pools: 1 },
      { domain: "far", durability: "LEDGER", pools: 1 },
      { domain: "far", durability: "REDIS", pools: 1 },
    ]);
  });

  test("a queue has quotas only for pools of its domain, and cannot be deleted while a pool names it", async () => {
    await register({ name: "far-pool", domain: "far", quota: 3 });
    const queue = {
      name: "q",
      strategy: "STRICT_FIFO" as const,
      quotas: [{ flavor: "far-pool", resource: "r", nominal: 1 }],
    };
    const apart = { kind: "apart", pool: "far-pool", domain: "far", durability: "LEDGER" };
    assert.deepEqual(await store.admin.createQueue(queue), apart);
    assert.equal(await store.admin.getQueue("q"), null);
    await store.admin.createQueue({ ...queue, quotas: [] });
    assert.deepEqual(await store.admin.updateQueue({ ...queue, version: 0 }), apart);
    assert.equal((await register({ quota: 1, queue: "q" })).kind, "done");
    assert.deepEqual(await store.admin.deleteQueue("q"), { kind: "inUse", by: `pool ${POOL}` });
    await register({ queue: null });
    assert.equal((await store.admin.deleteQueue("q")).kind, "done");
  });

  test("a change of a queue raises the version of the limits, unless it is refused or changes nothing", async () => {
    const versions = [await limitsVersion()];
    const queue = {
      name: "q",
      strategy: "STRICT_FIFO" as const,
      quotas: [{ flavor: FLAVOR, resource: "r", nominal: 1 }],
    };
    const quotas = [{ flavor: FLAVOR, resource: "r", nominal: 2 }];
    for (const change of [
      () => store.admin.createQueue(queue),
      () => store.admin.createQueue(queue),
      () => store.admin.updateQueue({ ...queue, quotas, version: 0 }),
      () => store.admin.updateQueue({ ...queue, quotas, version: 0 }),
      () => store.admin.updateQueue({ ...queue, version: 9 }),
      () => store.admin.deleteQueue("q"),
      () => store.admin.deleteQueue("q"),
    ]) {
      await change();
      versions.push(await limitsVersion());
    }
    const [first = 0] = versions;
    assert.deepEqual(versions, [first, first + 1, first + 1, first + 2, first + 2, first + 2, first + 3, first + 3]);
  });

  test("pools are listed by name, in pages, with their use", async () => {
    for (const name of ["ex:a", "ex:b", "ex:c", "other"]) await register({ name, quota: 5 });
    const { epoch } = await raiseQuotaEpoch(store);
    const allocations = [
      allocation({ pool: "ex:b", token: "x", amount: 2 }),
      allocation({ pool: "ex:b", token: "y", amount: 1 }),
    ];
    await ledgerAt(store, NOW).commit(epoch, [
      { allocations, holder: caller("c"), fence: (BigInt(epoch) << 32n) + 1n },
    ]);
    const first = await store.pools.list({ prefix: "ex:", pageSize: 2, after: null });
    assert.ok(first !== "badCursor");
    assert.deepEqual(
      first.pools.map(({ name, used, tokens }) => [name, used, tokens]),
      [
        ["ex:a", 0, 0],
        ["ex:b", 3, 2],
      ],
    );
    const second = await store.pools.list({ prefix: "ex:", pageSize: 2, after: first.next });
    assert.ok(second !== "badCursor");
    assert.deepEqual([second.pools.map(({ name }) => name), second.next], [["ex:c"], null]);
    assert.equal(await store.pools.list({ prefix: "", pageSize: 2, after: "nonsense" }), "badCursor");
    const shown = async (...within: readonly string[]) => {
      const page = await store.pools.list({ prefix: "", pageSize: 9, after: null, within });
      assert.ok(page !== "badCursor");
      for (const { name } of page.pools) assert.ok(isPoolShown(name, within));
      return page.pools.map(({ name }) => name);
    };
    assert.deepEqual(await shown("ex"), ["ex:a", "ex:b", "ex:c"]);
    assert.deepEqual(await shown("ex:b", "e", "ex:"), ["ex:b"]);
    assert.deepEqual(await shown(), []);
  });

  async function withAllocations() {
    await register({ quota: 100 });
    const { epoch } = await raiseQuotaEpoch(store);
    const commit = (at: number, nowMs: number, of: Parameters<typeof allocation>[0], holder = "flyte") => {
      const fence = (BigInt(epoch) << 32n) + BigInt(at + 1);
      const grant = { allocations: [allocation({ token: `t${at}`, ...of })], holder: caller(holder), fence };
      return ledgerAt(store, nowMs).commit(epoch, [grant]);
    };
    await commit(1, NOW + 3, { project: "p", namespace: "a" });
    await commit(2, NOW + 1, { project: "p", namespace: "b" }, "other");
    await commit(3, NOW + 2, { project: "q", namespace: "a" });
    await commit(4, NOW + 2, { project: "q", namespace: "b" }, "gone");
    await ledgerAt(store, NOW).release([releaseOf({ token: "t4", holder: caller("gone") })]);
    const plannerEpoch = await takePlannerLease(store, "p1");
    const job = newJob({ name: "train" });
    await store.intake.createJob({ job, sent: sentOf(job), requestId: "" });
    const allocations = [allocation({ pool: FLAVOR, token: "job", amount: 4, queue: "research", leaseMs: null })];
    const fence = (BigInt(epoch) << 32n) + 99n;
    const record = { planned: plannedFor(job), allocations, fence, quotaEpoch: epoch, plannerEpoch, nowMs: NOW + 9 };
    assert.equal(await recordOne(store, record), "recorded");
    return job;
  }

  type Filter = Parameters<TestStore["pools"]["listAllocations"]>[0]["filter"];
  const NO_FILTER: Filter = { pool: null, project: null, namespace: null, holder: null, grantedBeforeMs: null };
  const filters: Record<string, { filter: Partial<Filter>; tokens: readonly string[] }> = {
    "without a filter, the oldest first": { filter: {}, tokens: ["t2", "t3", "t1", "job"] },
    "by pool": { filter: { pool: POOL }, tokens: ["t2", "t3", "t1"] },
    "by project": { filter: { project: "p" }, tokens: ["t2", "t1"] },
    "by namespace": { filter: { namespace: "a" }, tokens: ["t3", "t1"] },
    "by project and namespace": { filter: { project: "q", namespace: "a" }, tokens: ["t3"] },
    "by a caller": { filter: { holder: "flyte" }, tokens: ["t3", "t1"] },
    "by a job's admission": { filter: { holder: "job/team/train/1" }, tokens: ["job"] },
    "by another admission": { filter: { holder: "job/team/train/2" }, tokens: [] },
    "by age": { filter: { grantedBeforeMs: NOW + 3 }, tokens: ["t2", "t3"] },
    "by all filters": {
      filter: { pool: POOL, project: "p", namespace: "a", holder: "flyte", grantedBeforeMs: NOW + 4 },
      tokens: ["t1"],
    },
    "of those that a caller may see: its own": {
      filter: { shown: { pools: [], holder: "flyte" } },
      tokens: ["t3", "t1"],
    },
    "of those that a caller may see: of a pool": {
      filter: { shown: { pools: [POOL], holder: "nobody" } },
      tokens: ["t2", "t3", "t1"],
    },
    "by a holder that the database cannot store": { filter: { holder: "job/\u0000" }, tokens: [] },
  };
  test("allocations are listed in pages by every filter, with readable holders", async () => {
    const job = await withAllocations();
    for (const [name, { filter, tokens }] of Object.entries(filters)) {
      const listed: string[] = [];
      let next: string | null = null;
      do {
        const page = await store.pools.listAllocations({
          filter: { ...NO_FILTER, ...filter },
          pageSize: 2,
          after: next,
        });
        assert.ok(page !== "badCursor");
        listed.push(...page.allocations.map(({ token }) => token));
        next = page.next;
      } while (next !== null);
      assert.deepEqual(listed, tokens, name);
    }
    const query = { filter: NO_FILTER, pageSize: 9, after: null };
    const page = await store.pools.listAllocations(query);
    assert.ok(page !== "badCursor");
    assert.deepEqual(
      page.allocations.map(({ holderText, grantTimeMs, leaseMs }) => [holderText, grantTimeMs, leaseMs]),
      [
        ["other", NOW + 1, 60_000],
        ["flyte", NOW + 2, 60_000],
        ["flyte", NOW + 3, 60_000],
        ["job/team/train/1", NOW + 9, null],
      ],
    );
    await db.query("delete from jobs");
    const orphan = `job/${job.uid}/1`;
    const orphans = await store.pools.listAllocations({ ...query, filter: { ...NO_FILTER, holder: orphan } });
    assert.ok(orphans !== "badCursor");
    assert.deepEqual(
      orphans.allocations.map(({ holderText }) => holderText),
      [orphan],
    );
    assert.equal(await store.pools.listAllocations({ ...query, after: "nonsense" }), "badCursor");
  });

  test("audit entries are filtered by time, and those before the retention are deleted", async () => {
    const note = { action: "CreateQueue", actor: "ann", details: {} } as const;
    await store.access.appendAudit(...[3, 1, 2].map((timeMs) => ({ ...note, timeMs, subject: `at-${timeMs}` })));
    const subjects = async (times: { readonly sinceMs?: number; readonly untilMs?: number } = {}) => {
      const filter = { actor: "ann", action: null, subject: null, ...times };
      const page = await store.pools.listAudit({ filter, pageSize: 9, after: null });
      assert.ok(page !== "badCursor");
      return page.entries.map(({ subject }) => subject);
    };
    assert.deepEqual(await subjects(), ["at-2", "at-1", "at-3"]);
    assert.deepEqual(await subjects({ sinceMs: 2 }), ["at-2", "at-3"]);
    assert.deepEqual(await subjects({ sinceMs: 1, untilMs: 3 }), ["at-2", "at-1"]);
    assert.equal(await store.access.pruneAudit(3), 2);
    assert.equal(await store.access.pruneAudit(3), 0);
    assert.deepEqual(await subjects(), ["at-3"]);
  });

  test("audit entries are listed in pages, the newest first", async () => {
    for (let at = 0; at < 5; at += 1) {
      const entry = {
        actor: `a${at % 2}`,
        action: "ReconcileQuota" as const,
        subject: "",
        reason: "r\u0000",
        details: { at },
      };
      await store.pools.appendAudit(entry);
    }
    const query = { filter: { actor: "a0", action: null, subject: null }, pageSize: 2, after: null };
    const first = await store.pools.listAudit(query);
    assert.ok(first !== "badCursor");
    const second = await store.pools.listAudit({ ...query, after: first.next });
    assert.ok(second !== "badCursor");
    assert.deepEqual(
      [...first.entries, ...second.entries].map(({ details }) => details),
      [{ at: 4 }, { at: 2 }, { at: 0 }],
    );
    assert.equal(second.next, null);
    assert.equal(first.entries[0]?.reason, "r\ufffd");
  });
});
