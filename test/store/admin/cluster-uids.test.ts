import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";
import type { Db } from "../../../src/adapters/store/db/db.ts";
import { onEachDatabase, onPostgres } from "../../support/databases.ts";
import { freshStore, type TestStore } from "../db.ts";

const UID = "5f0a6c1e-0000-4000-8000-000000000001";
const OTHER = "5f0a6c1e-0000-4000-8000-000000000002";
const named = (name: string, uid?: string) => {
  const cluster = { name, labels: {}, flavors: [], credentials: { kind: "sealed" } };
  return uid === undefined ? cluster : { ...cluster, uid };
};

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

  const uidOf = async (name: string) => (await store.admin.getCluster(name))?.uid;
  const update = (name: string, uid: string) =>
    store.clusters.update({ ...named(name, uid), credentials: { kind: "sealed", text: "new" }, version: 0 });

  test("one cluster under two names is refused, and nothing of the second is stored", async () => {
    assert.equal((await store.clusters.register(named("south", UID))).kind, "done");
    assert.equal(await uidOf("south"), UID);
    const flavors = [{ name: "gpu/new", resource: "nvidia.com/gpu", nodeLabels: {} }];
    const again = await store.clusters.register({ ...named("north", UID), flavors });
    assert.deepEqual(again, { kind: "sameCluster", uid: UID, as: "south" });
    assert.equal(await store.admin.getCluster("north"), null);
    assert.deepEqual(await db.query("select name from pools where name = 'gpu/new'"), []);
    assert.equal((await store.clusters.register(named("north", OTHER))).kind, "done");
    assert.equal((await store.clusters.register(named("south", UID))).kind, "exists", "the name is the first reason");
  });

  test("new credentials of another cluster are refused, and the old ones stay", async () => {
    await store.clusters.register(named("south", UID));
    await store.clusters.register(named("north", OTHER));
    assert.deepEqual(await update("south", OTHER), { kind: "sameCluster", uid: OTHER, as: "north" });
    assert.deepEqual(await update("south", "third"), { kind: "otherCluster", uid: "third", registered: UID });
    assert.deepEqual(await store.clusters.credentialsOf("south"), { kind: "sealed" });
    assert.equal((await store.admin.getCluster("south"))?.version, 1);
    assert.equal((await update("south", UID)).kind, "done");
    assert.deepEqual(await store.clusters.credentialsOf("south"), { kind: "sealed", text: "new" });
  });

  test("a cluster that was registered without its uid gets it when it tells it first", async () => {
    await store.clusters.register(named("south"));
    await store.clusters.register(named("north"));
    assert.equal(await uidOf("south"), null);
    assert.equal(await store.clusters.claimUid({ cluster: "south", uid: UID }), null);
    assert.equal(await store.clusters.claimUid({ cluster: "south", uid: UID }), null, "again");
    assert.equal(await uidOf("south"), UID);
    const refusal = { kind: "sameCluster", uid: UID, as: "south" };
    assert.deepEqual(await store.clusters.uidRefusal({ cluster: "north", uid: UID }), refusal);
    assert.deepEqual(await store.clusters.claimUid({ cluster: "north", uid: UID }), refusal);
    assert.equal(await uidOf("north"), null);
    await store.clusters.remove("south", false);
    assert.equal(await store.clusters.claimUid({ cluster: "north", uid: UID }), null, "the other one is gone");
    assert.equal(await store.clusters.claimUid({ cluster: "gone", uid: OTHER }), null, "nothing to refuse");
    assert.equal(await store.clusters.uidRefusal({ cluster: "new", uid: OTHER }), null);
  });

  test("what a forgotten cluster was may be registered again, under its name and under another", async () => {
    for (const name of ["south", "north"]) {
      await store.clusters.register(named("south", UID));
      await store.clusters.remove("south", true);
      assert.equal(await store.clusters.uidRefusal({ cluster: "north", uid: UID }), null);
      assert.equal((await store.clusters.register(named(name, UID))).kind, "done", name);
      assert.equal(await uidOf(name), UID);
      await store.clusters.remove(name, false);
    }
  });

  test("the name of a forgotten cluster may be given to another one, at once or when that tells its uid", async () => {
    await store.clusters.register(named("south", UID));
    await store.clusters.remove("south", true);
    assert.equal((await store.clusters.register(named("south", OTHER))).kind, "done");
    assert.equal(await uidOf("south"), OTHER);
    await store.clusters.remove("south", true);
    await store.clusters.register(named("south"));
    assert.equal(await uidOf("south"), null);
    assert.equal(await store.clusters.claimUid({ cluster: "south", uid: UID }), null);
  });

  test("the process that simulates a cluster decides its uid", async () => {
    await store.clusters.register(named("copy", UID));
    for (const uid of [OTHER, UID, UID]) {
      await store.clusters.setUid({ cluster: "east", uid });
      assert.equal(await uidOf("east"), uid, "also after its state was made anew");
    }
    assert.equal(await uidOf("copy"), null);
  });
});

onPostgres((openDb) => {
  test("of many registrations of one cluster at the same time, one is done", async () => {
    const db = await openDb();
    try {
      const { store } = await freshStore(db);
      const names = Array.from({ length: 16 }, (_, at) => `c${at}`);
      await store.clusters.register(named("observed"));
      const claim = () => store.clusters.claimUid({ cluster: "observed", uid: UID });
      const outcomes = await Promise.all([
        claim().then((refusal) => refusal ?? { kind: "done" }),
        ...names.map((name) => store.clusters.register(named(name, UID))),
      ]);
      const kinds = outcomes.map(({ kind }) => kind).sort();
      assert.deepEqual(kinds, ["done", ...names.map(() => "sameCluster")]);
      const holders = await db.query<{ cluster: string }>("select cluster from cluster_uids");
      const as = new Set(outcomes.flatMap((outcome) => ("as" in outcome ? [outcome.as] : [])));
      assert.deepEqual(
        holders.map(({ cluster }) => cluster),
        [...as],
      );
    } finally {
      await db.close();
    }
  });
});
