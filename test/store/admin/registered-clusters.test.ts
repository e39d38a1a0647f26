import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";
import type { Db } from "../../../src/adapters/store/db/db.ts";
import { planClusters } from "../../../src/adapters/store/planning/fleet-settings.ts";
import { completeCapacity } from "../../support/complete-capacity.ts";
import { onEachDatabase } from "../../support/databases.ts";
import { snapshotOf } from "../../support/snapshot.ts";
import { freshStore, raiseQuotaEpoch, recordOne, type TestStore, takePlannerLease } from "../db.ts";
import { FLAVOR, NOW, newJob, plannedFor, sentOf } from "../jobs.ts";

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

  const CREDENTIALS = { kind: "sealed", text: "first" };
  const FLAVORS = [{ name: FLAVOR, resource: "nvidia.com/gpu", nodeLabels: { "gangway.dev/gpu": "h100" } }];
  const UNREGISTERED = {
    registered: [],
    simulated: ["east", "west"],
    lost: new Map(),
    policies: new Map(),
    returning: [],
    silent: [],
    unadopted: [],
  };
  const SOUTH = { name: "south", labels: { zone: "a" }, flavors: FLAVORS, credentials: CREDENTIALS };

  test("a registered cluster is listed, planned for and connected; no record shows its credentials", async () => {
    const made = await store.clusters.register(SOUTH);
    assert.ok(made.kind === "done");
    assert.deepEqual([made.record.name, made.record.simulated, made.record.reachable], ["south", false, false]);
    assert.ok(!JSON.stringify(await store.admin.listClusters()).includes("sealed"));
    assert.ok((await snapshotOf(db)).clusters.some(({ name }) => name === "south"));
    const registered = [{ name: "south", credentials: CREDENTIALS, gangScheduler: "none" }];
    assert.deepEqual(await store.clusters.listCredentials(), {
      registered,
      simulated: ["east", "west"],
      forgotten: [],
      lost: new Map(),
      policies: new Map(),
      returning: [],
      silent: [],
      unadopted: [],
    });
    assert.deepEqual(await store.clusters.credentialsOf("south"), CREDENTIALS);
    assert.equal(await store.clusters.credentialsOf("east"), null, "a simulated one has none");
    assert.equal((await store.clusters.register(SOUTH)).kind, "exists");
    assert.equal((await store.clusters.register({ ...SOUTH, name: "east" })).kind, "exists");
  });

  test("an update without credentials keeps them; it is refused if stale, or for a simulated cluster", async () => {
    await store.clusters.register(SOUTH);
    const update = { name: "south", labels: {}, flavors: [], credentials: null, version: 1 };
    const changed = await store.clusters.update(update);
    assert.ok(changed.kind === "done");
    assert.deepEqual([changed.record.version, changed.record.flavors], [2, []]);
    assert.deepEqual(await store.clusters.credentialsOf("south"), CREDENTIALS);
    assert.equal((await store.clusters.update(update)).kind, "stale");
    await store.clusters.update({ ...update, version: 0, credentials: { kind: "sealed", text: "second" } });
    assert.deepEqual(await store.clusters.credentialsOf("south"), { kind: "sealed", text: "second" });
    assert.equal((await store.clusters.update({ ...update, name: "none" })).kind, "notFound");
    assert.equal((await store.clusters.update({ ...update, name: "east" })).kind, "inUse");
  });

  test("a cluster keeps its gang scheduler unless an update names another", async () => {
    const made = await store.clusters.register({ ...SOUTH, gangScheduler: "volcano" });
    assert.ok(made.kind === "done");
    assert.equal(made.record.gangScheduler, "volcano");
    const update = { name: "south", labels: {}, flavors: [], credentials: null, version: 0 };
    await store.clusters.update(update);
    assert.equal((await store.clusters.listCredentials()).registered[0]?.gangScheduler, "volcano");
    await store.clusters.update({ ...update, gangScheduler: "none" });
    assert.equal((await store.admin.getCluster("south"))?.gangScheduler, "none");
    const unknown = { ...update, gangScheduler: "slurm" } as unknown as typeof update;
    await assert.rejects(store.clusters.update(unknown));
  });

  test("a cluster keeps its levels unless an update names others, and planner and audit see them", async () => {
    const topology = [{ name: "rack", label: "example.com/rack" }];
    const flavors = FLAVORS.map((flavor) => ({ ...flavor, topology: [] }));
    await store.clusters.register({ ...SOUTH, topology, flavors });
    const update = { name: "south", labels: {}, flavors, credentials: null, version: 0 };
    await store.clusters.update(update);
    const planned = async () => (await db.tx(planClusters)).find(({ name }) => name === "south");
    assert.deepEqual([(await planned())?.topology, (await planned())?.flavors[0]?.topology], [topology, []]);
    assert.deepEqual((await store.admin.getCluster("south"))?.topology, topology);
    await store.clusters.update({ ...update, topology: [] });
    assert.deepEqual([(await planned())?.topology, (await store.admin.getCluster("south"))?.topology], [[], []]);
    const filter = { actor: null, action: "UpdateCluster", subject: null } as const;
    const audited = await store.pools.listAudit({ pageSize: 1, after: null, filter });
    assert.ok(audited !== "badCursor");
    assert.deepEqual(audited.entries[0]?.details, {
      before: { labels: {}, flavors, topology, gangScheduler: "none" },
      after: { labels: {}, flavors, topology: [], gangScheduler: "none" },
    });
    const tooMany = Array.from({ length: 17 }, (_, at) => ({ name: `l${at}`, label: `l${at}` }));
    await assert.rejects(store.clusters.update({ ...update, topology: tooMany }), /topology/);
  });

  test("a forgotten cluster that is registered anew has the new levels alone", async () => {
    await store.clusters.register({ ...SOUTH, topology: [{ name: "rack", label: "r" }] });
    await store.clusters.remove("south", true);
    await store.clusters.register(SOUTH);
    assert.deepEqual((await store.admin.getCluster("south"))?.topology, []);
  });

  test("a simulated cluster gets its levels once: later starts keep them, as they keep its nodes", async () => {
    const north = { name: "north", labels: {}, flavors: [] };
    const topology = [{ name: "rack", label: "r" }];
    assert.deepEqual((await store.clusters.simulate({ ...north, topology }))?.topology, topology);
    assert.deepEqual((await store.clusters.simulate({ ...north, topology: [] }))?.topology, topology);
    assert.deepEqual((await store.clusters.simulate({ ...north, name: "old" }))?.topology, []);
    assert.deepEqual((await store.clusters.simulate({ ...north, name: "old", topology }))?.topology, []);
  });

  test("a cluster without gangs is deleted without a trace", async () => {
    await store.clusters.register(SOUTH);
    assert.equal((await store.clusters.remove("south", false)).kind, "done");
    assert.deepEqual(await store.clusters.listCredentials(), { ...UNREGISTERED, forgotten: [] });
    assert.equal((await store.clusters.remove("south", false)).kind, "notFound");
  });

  test("a cluster with a gang can only be forgotten: no planner sees it, and the gang's job is due", async () => {
    await store.clusters.register(SOUTH);
    const { job, ...record } = await planOne();
    assert.equal(await recordOne(store, record), "recorded");
    assert.deepEqual(await store.clusters.remove("south", false), {
      kind: "inUse",
      by: "1 gang that is placed there; wait for their end, or forget it if it is gone for good",
    });
    await db.query("update jobs set recheck_at_ms = null");
    assert.equal((await store.clusters.remove("south", true)).kind, "done");
    const rows = await db.query<{ at: number }>("select recheck_at_ms as at from jobs where uid = $1", [job.uid]);
    assert.deepEqual(rows, [{ at: NOW }]);
    assert.equal(await store.admin.getCluster("south"), null);
    assert.ok((await snapshotOf(db)).clusters.every(({ name }) => name !== "south"));
    assert.deepEqual(await store.clusters.listCredentials(), { ...UNREGISTERED, forgotten: ["south"] });
    assert.deepEqual(
      await store.clusters.recordCapacity(completeCapacity("south", [])),
      { epoch: null, changed: false },
      "an observer that does not know it yet changes nothing",
    );
    const again = await store.clusters.register(SOUTH);
    assert.ok(again.kind === "done");
    assert.deepEqual(await store.clusters.listCredentials(), {
      ...UNREGISTERED,
      registered: [{ name: "south", credentials: CREDENTIALS, gangScheduler: "none" }],
      forgotten: [],
      lost: new Map(),
      policies: new Map(),
      returning: [],
      silent: [],
      unadopted: [],
    });
  });

  test("a forgotten cluster can be neither cordoned nor uncordoned: its row does not change", async () => {
    await store.clusters.register(SOUTH);
    await recordOne(store, await planOne());
    await store.clusters.remove("south", true);
    const row = () => db.query("select * from clusters where name = 'south'");
    const before = await row();
    for (const cordoned of [true, false]) {
      assert.equal((await store.admin.setCordoned("south", cordoned)).kind, "notFound");
      assert.deepEqual(await row(), before);
    }
  });

  test("an admission that was planned before its cluster was deleted or forgotten is stale", async () => {
    for (const forget of [false, true]) {
      await store.clusters.register(SOUTH);
      const { job, ...record } = await planOne();
      await store.clusters.remove("south", forget);
      assert.equal(await recordOne(store, record), "stale", job.name);
    }
  });

  /** A job, and its admission to the registered cluster as a planner would record it now. */
  async function planOne() {
    const job = newJob();
    await store.intake.createJob({ job, sent: sentOf(job), requestId: "" });
    const plannerEpoch = await takePlannerLease(store, "p1");
    const { epoch: quotaEpoch } = await raiseQuotaEpoch(store);
    const found = (await snapshotOf(db)).clusters.find(({ name }) => name === "south");
    const planned = plannedFor(job, { cluster: "south", admissionCounter: found?.admissionCounter ?? -1 });
    return { job, planned, allocations: [], fence: null, quotaEpoch, plannerEpoch, nowMs: NOW + 1 };
  }
});
