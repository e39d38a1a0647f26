import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";
import type { Db } from "../../../src/adapters/store/db/db.ts";
import { onEachDatabase, onPostgres } from "../../support/databases.ts";
import { snapshotOf } from "../../support/snapshot.ts";
import { FLAVOR, NOW, plannedFor } from "../jobs.ts";
import { freshPlanner, type TestPlanner } from "../planner-fixture.ts";

const FLAVORS = [{ name: FLAVOR, resource: "nvidia.com/gpu", nodeLabels: { "gangway.dev/gpu": "h100" } }];
const REAL = { name: "real", labels: {}, flavors: FLAVORS, credentials: { kind: "sealed" } };
const EAST = { name: "east", labels: { region: "east" }, flavors: FLAVORS };

onEachDatabase((openDb) => {
  let db: Db;
  let store: TestPlanner["store"];
  let submit: TestPlanner["submit"];
  let admit: TestPlanner["admit"];
  let load: TestPlanner["load"];
  before(async () => {
    db = await openDb();
  });
  after(() => db.close());
  beforeEach(async () => {
    ({ store, submit, admit, load } = await freshPlanner(db));
  });

  const names = async () => (await store.admin.listClusters()).map(({ name }) => name);
  const retired = async () =>
    (await snapshotOf(db)).clusters.filter((cluster) => cluster.retired).map(({ name }) => name);
  const register = async () => {
    const outcome = await store.clusters.register(REAL);
    assert.ok(outcome.kind === "done");
    return outcome.retired;
  };

  test("a registration retires the simulated clusters, once, and names them", async () => {
    assert.deepEqual(await retired(), []);
    assert.deepEqual(await register(), ["east", "west"]);
    assert.deepEqual(await retired(), ["east", "west"]);
    assert.equal((await store.admin.getCluster("east"))?.retired, true);
    const second = await store.clusters.register({ ...REAL, name: "second" });
    assert.deepEqual("retired" in second && second.retired, []);
  });

  test("a registration that is refused retires nothing", async () => {
    assert.equal((await store.clusters.register({ ...REAL, name: "east" })).kind, "exists");
    assert.deepEqual(await retired(), []);
  });

  test("an admission that was planned before the registration is stale, on a simulated cluster only", async () => {
    const job = await submit();
    const planned = plannedFor(job, { simulated: true });
    await register();
    assert.equal(await admit(planned), "stale");
    assert.equal(await admit(plannedFor(job, { cluster: "real" })), "recorded");
    assert.equal((await load(job.uid)).admissions[0]?.simulated, undefined);
  });

  test("the record of an admission says that its cluster was simulated, also once that is gone", async () => {
    const job = await submit();
    assert.equal(await admit(plannedFor(job, { simulated: true })), "recorded");
    await store.clusters.remove("east", true);
    assert.equal((await load(job.uid)).admissions[0]?.simulated, true);
  });

  test("a retired cluster is forgotten once no gang is live there, or if no process simulates it", async () => {
    const job = await submit();
    assert.equal(await admit(plannedFor(job, { simulated: true })), "recorded");
    await register();
    assert.deepEqual(await store.clusters.forgetRetired(["east", "west"]), ["west"]);
    assert.deepEqual(await names(), ["east", "real"]);
    await db.query("update jobs set recheck_at_ms = null");
    assert.deepEqual(await store.clusters.forgetRetired([]), ["east"]);
    assert.deepEqual(await names(), ["real"]);
    const due = await db.query<{ uid: string }>("select uid from jobs where recheck_at_ms = $1", [NOW]);
    assert.deepEqual(due, [{ uid: job.uid }], "its job waits again");
  });

  test("a cluster that takes gangs is not forgotten, although this process does not simulate it", async () => {
    assert.deepEqual(await store.clusters.forgetRetired([]), []);
  });

  test("beside a real cluster none is simulated, unless it is kept; a kept one is not retired", async () => {
    await register();
    assert.equal(await store.clusters.simulate(EAST), null);
    assert.equal(await store.clusters.simulate({ ...EAST, name: "new" }), null);
    assert.deepEqual(await names(), ["east", "real", "west"], "no row is made for a new one");
    assert.equal((await store.clusters.simulate({ ...EAST, besideReal: true }))?.retired, false);
    await store.clusters.register({ ...REAL, name: "second" });
    assert.deepEqual(await retired(), ["west"]);
    assert.equal(await store.clusters.simulate(EAST), null, "once it is not kept any more");
    assert.deepEqual(await retired(), ["east", "west"]);
  });

  test("a simulation never takes the name of a real cluster", async () => {
    assert.equal((await store.clusters.simulate({ ...EAST, name: "real", besideReal: true })) === null, false);
    await store.clusters.remove("real", false);
    await register();
    assert.equal(await store.clusters.simulate({ ...EAST, name: "real", besideReal: true }), null);
    assert.equal((await store.admin.getCluster("real"))?.simulated, false);
  });

  test("retired clusters come back once no real one is registered; one that was removed does not", async () => {
    await store.clusters.remove("west", false);
    assert.equal(await store.clusters.simulate({ ...EAST, name: "west" }), null);
    await register();
    await store.clusters.forgetRetired([]);
    assert.deepEqual(await names(), ["real"]);
    assert.equal(await store.clusters.simulate(EAST), null);
    assert.deepEqual(await names(), ["real"], "a forgotten one stays forgotten");
    await store.clusters.remove("real", false);
    assert.equal((await store.clusters.simulate(EAST))?.name, "east");
    assert.equal(await store.clusters.simulate({ ...EAST, name: "west", besideReal: true }), null);
    assert.deepEqual(await retired(), []);
  });

  test("a simulated cluster is removed while no gang is live there; with forget, always", async () => {
    const job = await submit();
    await admit(plannedFor(job, { simulated: true }));
    assert.deepEqual(await store.clusters.remove("east", false), {
      kind: "inUse",
      by: "1 gang that is placed there; wait for their end, or forget it if it is gone for good",
    });
    await db.query("update admissions set state = 'ended'");
    assert.equal((await store.clusters.remove("east", false)).kind, "done", "pods of ended jobs are not real");
    assert.equal((await store.clusters.remove("west", true)).kind, "done");
    assert.deepEqual(await names(), []);
    assert.deepEqual((await store.clusters.listCredentials()).forgotten, ["east", "west"]);
  });

  test("intake sees the clusters that take gangs only while one of them is simulated", async () => {
    const seen = async () => (await (await store.intake.facts({ namespace: "team" })).clusters).map(({ name }) => name);
    assert.deepEqual(await seen(), ["east", "west"]);
    await store.clusters.simulate({ ...EAST, besideReal: true });
    await register();
    assert.deepEqual(await seen(), ["east", "real"]);
    await store.clusters.remove("east", false);
    assert.deepEqual(await seen(), []);
  });
});

onPostgres((openDb) => {
  let db: Db;
  before(async () => {
    db = await openDb();
  });
  after(() => db.close());

  test("however admissions race a registration, none is recorded on a simulated cluster after its answer", async () => {
    for (let round = 0; round < 20; round += 1) {
      const { store, submit, admit } = await freshPlanner(db);
      for (let at = 0; at < 8; at += 1) await store.clusters.simulate({ ...EAST, name: `c${at}` });
      const jobs = await Promise.all(Array.from({ length: 8 }, () => submit()));
      const placed = async () => {
        const rows = await db.query<{ cluster: string }>("select cluster from admissions order by cluster");
        return rows.map(({ cluster }) => cluster);
      };
      const admitting = jobs.map((job, at) => admit(plannedFor(job, { cluster: `c${at}` }), { amount: 1 }));
      const outcome = await store.clusters.register(REAL);
      const atItsAnswer = await placed();
      const outcomes = await Promise.all(admitting);
      assert.equal(outcome.kind, "done");
      assert.deepEqual(await placed(), atItsAnswer);
      assert.equal(outcomes.filter((one) => one === "recorded").length, atItsAnswer.length);
    }
  });

  test("however a simulation races a registration, it does not take gangs beside the real cluster", async () => {
    for (let round = 0; round < 20; round += 1) {
      const { store } = await freshPlanner(db);
      const [, registered] = await Promise.all([
        store.clusters.simulate({ ...EAST, name: "new" }),
        store.clusters.register(REAL),
      ]);
      assert.equal(registered.kind, "done");
      const { clusters } = await snapshotOf(db);
      assert.deepEqual(
        clusters.filter(({ simulated, retired }) => simulated && !retired),
        [],
      );
    }
  });
});
