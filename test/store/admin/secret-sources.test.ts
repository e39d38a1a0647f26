import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";
import type { Db } from "../../../src/adapters/store/db/db.ts";
import { onEachDatabase, onPostgres } from "../../support/databases.ts";
import { freshStore, type TestStore } from "../db.ts";

const SEALED = { kind: "sealed", text: "t" };
const secretOf = (cluster: string) => {
  return { kind: "secret", cluster, namespace: "fleet", name: "kube", key: "value", context: "" };
};
const named = (name: string, credentials: object = SEALED) => {
  return { name, labels: {}, flavors: [], credentials: credentials as typeof SEALED };
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
    assert.equal((await store.clusters.register(named("hub"))).kind, "done");
  });

  const update = (name: string, credentials: object) =>
    store.clusters.update({ ...named(name, credentials), version: 0 });
  const refused = (source: string, why: string) => ({ kind: "refusedSource", source, why });

  test("a cluster refers to a Secret of a registered cluster, or of the service's own", async () => {
    assert.equal((await store.clusters.register(named("lake", secretOf("hub")))).kind, "done");
    assert.deepEqual(await store.clusters.credentialsOf("lake"), secretOf("hub"));
    assert.equal((await store.clusters.register(named("own", secretOf("")))).kind, "done");
    assert.equal((await update("own", secretOf("hub"))).kind, "done");
    assert.equal((await update("own", SEALED)).kind, "done");
  });

  const wrong: Record<string, { cluster: string; source: string; gives: object; prepare?: () => Promise<unknown> }> = {
    "a cluster that is not registered": {
      cluster: "lake",
      source: "none",
      gives: { kind: "unknownSource", source: "none" },
    },
    itself: {
      cluster: "hub",
      source: "hub",
      gives: refused("hub", "cannot have the Secret with its own kubeconfig"),
    },
    "a simulated cluster": {
      cluster: "lake",
      source: "east",
      gives: refused("east", "is simulated: name a real cluster"),
    },
    "a cluster whose kubeconfig is in a Secret": {
      cluster: "lake",
      source: "own",
      prepare: () => store.clusters.register(named("own", secretOf(""))),
      gives: refused("own", "has its own kubeconfig in a Secret, too"),
    },
    "another one, while it has the Secret of a third itself": {
      cluster: "hub",
      source: "other",
      prepare: async () => {
        await store.clusters.register(named("other"));
        await store.clusters.register(named("third", secretOf("hub")));
      },
      gives: refused("other", "cannot serve hub, which has the Secret with the kubeconfig of cluster third"),
    },
  };
  for (const [what, { cluster, source, gives, prepare }] of Object.entries(wrong)) {
    test(`a reference to a Secret of ${what} is refused, and nothing is stored`, async () => {
      await prepare?.();
      const before = await store.clusters.listCredentials();
      assert.deepEqual(await store.clusters.sourceRefusal({ cluster, credentials: secretOf(source) }), gives);
      if (cluster !== "hub") {
        assert.deepEqual(await store.clusters.register(named(cluster, secretOf(source))), gives);
        assert.equal(await store.admin.getCluster(cluster), null);
        await store.clusters.register(named(cluster));
      }
      assert.deepEqual(await update(cluster, secretOf(source)), gives);
      if (cluster !== "hub") await store.clusters.remove(cluster, false);
      assert.deepEqual(await store.clusters.listCredentials(), before);
    });
  }

  test("a cluster that has the Secret of another one is not removed, but may be forgotten", async () => {
    await store.clusters.register(named("lake", secretOf("hub")));
    const by = "cluster lake, whose kubeconfig is in a Secret there; update or remove that cluster first";
    assert.deepEqual(await store.clusters.remove("hub", false), { kind: "inUse", by });
    assert.equal((await store.clusters.remove("hub", true)).kind, "done");
    assert.deepEqual(await update("lake", secretOf("hub")), { kind: "unknownSource", source: "hub" });
    await store.clusters.register(named("hub"));
    assert.equal((await store.clusters.remove("lake", false)).kind, "done");
    assert.equal((await store.clusters.remove("hub", false)).kind, "done");
  });

  test("the audit log has the names of a reference, and no other credentials", async () => {
    await store.clusters.register(named("lake", secretOf("hub")));
    await update("lake", SEALED);
    const filter = { actor: null, action: null, subject: null };
    const page = await store.pools.listAudit({ filter, pageSize: 3, after: null });
    assert.ok(page !== "badCursor");
    const told = page.entries.map(({ details }) =>
      ["before", "after"].map((side) => (details[side] as Record<string, unknown> | null)?.["credentials"] ?? null),
    );
    const [updated, made, first] = [
      [secretOf("hub"), "sealed"],
      [null, secretOf("hub")],
      [null, "sealed"],
    ];
    assert.deepEqual(told, [updated, made, first]);
  });
});

onPostgres((openDb) => {
  test("two clusters never come to have the Secrets of each other, and no source goes while it is named", async (t) => {
    const db = await openDb();
    t.after(() => db.close());
    const { store } = await freshStore(db);
    for (let round = 0; round < 20; round += 1) {
      const [one, two] = [`a${round}`, `b${round}`];
      for (const name of [one, two]) await store.clusters.register(named(name));
      const outcomes = await Promise.all([
        store.clusters.update({ ...named(one, secretOf(two)), version: 0 }),
        store.clusters.update({ ...named(two, secretOf(one)), version: 0 }),
      ]);
      assert.deepEqual(outcomes.map(({ kind }) => kind).sort(), ["done", "refusedSource"]);
      const [free, user] = [`free${round}`, `user${round}`];
      await store.clusters.register(named(free));
      const [made, removed] = await Promise.all([
        store.clusters.register(named(user, secretOf(free))),
        store.clusters.remove(free, false),
      ]);
      const isMade = made.kind === "done";
      assert.deepEqual([made.kind, removed.kind], isMade ? ["done", "inUse"] : ["unknownSource", "done"]);
    }
  });
});
