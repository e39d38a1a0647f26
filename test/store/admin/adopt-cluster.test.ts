import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";
import { markRestored } from "../../../src/adapters/store/db/begin-anew.ts";
import type { Db } from "../../../src/adapters/store/db/db.ts";
import { planClusters } from "../../../src/adapters/store/planning/fleet-settings.ts";
import { clusterState } from "../../../src/core/admin/cluster.ts";
import { completeCapacity } from "../../support/complete-capacity.ts";
import { onEachDatabase } from "../../support/databases.ts";
import { freshStore, type TestStore } from "../db.ts";

onEachDatabase((openDb) => {
  let db: Db;
  let store: TestStore;
  before(async () => {
    db = await openDb();
  });
  after(() => db.close());
  beforeEach(async () => {
    store = (await freshStore(db)).store;
    for (const name of ["north", "south"]) await register(name);
  });

  const register = async (name: string) => {
    const made = await store.clusters.register({ name, labels: {}, flavors: [], credentials: { kind: "sealed" } });
    assert.equal(made.kind, "done");
    await store.clusters.recordCapacity(completeCapacity(name, []));
  };
  const restore = () => markRestored({ query: async (text, params) => ({ rows: await db.query(text, params) }) });
  const stateOf = async (name: string) => clusterState((await store.admin.getCluster(name)) ?? assert.fail());
  const unadopted = async () => (await store.clusters.listCredentials()).unadopted;
  const entries = () => db.query("select subject from audit_entries where action = 'AdoptCluster' order by id");

  test("after a restore each real cluster waits, and none takes gangs before all are adopted", async () => {
    assert.deepEqual(await unadopted(), []);
    await restore();
    assert.deepEqual(await unadopted(), ["north", "south"], "those of the back-up itself, east and west, do not");
    for (const name of ["north", "south"]) assert.equal(await stateOf(name), "RETURNING");
    assert.equal((await store.clusters.endReturn("north", [])).ended, false);
    const adopted = await store.admin.adoptCluster("north");
    assert.ok(adopted.kind === "done");
    assert.equal(adopted.record.unadoptedMs, null);
    assert.deepEqual(await unadopted(), ["south"]);
    assert.equal((await store.clusters.endReturn("north", [])).ended, false, "south is not adopted");
    const restored = async () => (await db.tx(planClusters)).map((cluster) => cluster.restored);
    assert.ok((await restored()).every((one) => one === true));
    await store.admin.adoptCluster("south");
    for (const name of ["north", "south"]) {
      assert.deepEqual(await store.clusters.endReturn(name, []), { ended: true, left: [] });
      assert.equal(await stateOf(name), "ACTIVE");
    }
    assert.ok((await restored()).every((one) => one === false));
  });

  test("an adoption is noted once; a cluster that nobody knows is not adopted", async () => {
    assert.deepEqual(await store.admin.adoptCluster("nowhere"), { kind: "notFound" });
    await restore();
    for (let times = 0; times < 2; times += 1) await store.admin.adoptCluster("north");
    assert.deepEqual(await entries(), [{ subject: "north" }]);
  });

  test("a cluster that is registered meanwhile waits too; one that is forgotten keeps no other waiting", async () => {
    await restore();
    await register("late");
    assert.deepEqual(await unadopted(), ["late", "north", "south"]);
    assert.equal(await stateOf("late"), "RETURNING");
    for (const name of ["late", "south"]) await store.admin.adoptCluster(name);
    assert.equal((await store.clusters.endReturn("late", [])).ended, false);
    await store.clusters.remove("north", true);
    assert.equal((await store.clusters.endReturn("late", [])).ended, true);
    await register("north");
    assert.deepEqual(await unadopted(), [], "it is over");
    assert.equal(await stateOf("north"), "RETURNING", "as any that was forgotten");
  });
});
