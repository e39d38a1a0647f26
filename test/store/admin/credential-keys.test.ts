import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";
import { listAudit } from "../../../src/adapters/store/admin/audit.ts";
import type { Db } from "../../../src/adapters/store/db/db.ts";
import { createKeyAdmin } from "../../../src/api/cluster/key-admin.ts";
import { onlyDefault, type Reseal } from "../../../src/core/admin/credential-keys.ts";
import { type JsonObject, stringAt } from "../../../src/runtime/json.ts";
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
  });

  const sealed = (text: string, key?: string) => ({ kind: "sealed", text, ...(key === undefined ? {} : { key }) });
  const register = async (name: string, credentials: JsonObject) =>
    assert.equal((await store.clusters.register({ name, labels: {}, flavors: [], credentials })).kind, "done");
  /** Names of 45 clusters, which are three pages. */
  const NAMES = Array.from({ length: 45 }, (_, at) => `c${String(at).padStart(2, "0")}`);
  const uses = async () =>
    Object.fromEntries((await store.clusters.listKeyUses()).map(({ name, clusters }) => [name, clusters.length]));
  const entries = async () => {
    const filter = { actor: null, action: "RotateCredentialKeys", subject: null } as const;
    const page = await listAudit(db, { filter, after: null, pageSize: 1_000 });
    assert.ok(page !== "badCursor");
    return page.entries;
  };
  /** A process whose current key is this one. What it cannot decrypt has the text `broken`. */
  const admin = (current: () => string, onReseal: (cluster: string) => void = () => {}) =>
    createKeyAdmin({
      keys: () => ({ current: current(), keys: new Map([[current(), Buffer.alloc(32)]]) }),
      table: store.clusters,
      loadReseal: async () => (stored, cluster, keys) => {
        onReseal(cluster);
        if (stored["text"] === "broken") throw new Error(`${cluster} does not decrypt`);
        return { ...stored, key: keys.current };
      },
    });
  const { signal } = new AbortController();

  test("keys are listed by name with the clusters that need them; files and simulated clusters need none", async () => {
    assert.deepEqual(await store.clusters.listKeyUses(), []);
    await register("south", sealed("a", "b"));
    await register("north", sealed("b", "b"));
    await register("before", sealed("c"));
    await register("disk", { kind: "file", path: "/k", context: "" });
    assert.deepEqual(await store.clusters.listKeyUses(), [
      { name: "b", clusters: ["north", "south"] },
      { name: "default", clusters: ["before"] },
    ]);
    await store.clusters.remove("north", true);
    assert.deepEqual(await uses(), { b: 1, default: 1 }, "a forgotten cluster needs none");
  });

  test("a rotation encrypts everything again, once, in pages, with an entry for each cluster", async () => {
    for (const name of NAMES) await register(name, sealed(name, name < "c10" ? undefined : "old"));
    await register("disk", { kind: "file", path: "/k", context: "" });
    const { rotateKeys } = admin(() => "new");
    const outcome = await rotateKeys("new", signal);
    assert.ok(outcome.kind === "done");
    assert.deepEqual([outcome.changed, outcome.problems], [45, []]);
    assert.deepEqual(outcome.keys, [{ name: "new", clusters: NAMES, isCurrent: true, isKnown: true }]);
    const { registered } = await store.clusters.listCredentials();
    for (const { name, credentials } of registered) {
      const expected = name === "disk" ? { kind: "file", path: "/k", context: "" } : sealed(name, "new");
      assert.deepEqual(credentials, expected);
    }
    assert.equal((await store.admin.getCluster("c00"))?.version, 1, "an admin's change is not in the way");
    const told = (await entries()).map(({ subject, details }) => [subject, JSON.stringify(details)]).reverse();
    const change = (name: string) => ({ before: { key: name < "c10" ? "default" : "old" }, after: { key: "new" } });
    assert.deepEqual(
      told,
      NAMES.map((name) => [name, JSON.stringify(change(name))]),
    );
    const again = await rotateKeys("", signal);
    assert.ok(again.kind === "done");
    assert.equal(again.changed, 0);
    assert.equal((await entries()).length, 45, "nothing changed, no entry");
  });

  test("credentials that do not decrypt stay, are named, and keep no other ones back", async () => {
    for (const name of NAMES) await register(name, sealed(name === "c03" || name === "c21" ? "broken" : "fine", "old"));
    const outcome = await admin(() => "new").rotateKeys("", signal);
    assert.ok(outcome.kind === "done");
    assert.equal(outcome.changed, 43);
    assert.deepEqual(outcome.problems, [
      { cluster: "c03", message: "c03 does not decrypt" },
      { cluster: "c21", message: "c21 does not decrypt" },
    ]);
    assert.deepEqual(
      outcome.keys.map(({ name, clusters, isKnown }) => [name, clusters.length, isKnown]),
      [
        ["new", 43, true],
        ["old", 2, false],
      ],
    );
    assert.equal((await entries()).length, 43);
  });

  test("a rotation that fails in the middle keeps its pages, and the next one does the rest", async () => {
    for (const name of NAMES) await register(name, sealed("fine", "old"));
    const stop = new AbortController();
    const aborted = admin(
      () => "new",
      (cluster) => cluster === "c25" && stop.abort(),
    );
    await assert.rejects(aborted.rotateKeys("", stop.signal));
    assert.deepEqual(await uses(), { new: 40, old: 5 });
    const fails: Reseal = () => {
      throw new Error("the process is gone");
    };
    await assert.rejects(store.clusters.resealCredentials({ key: "new", after: "" }, fails), /the process is gone/);
    assert.deepEqual([await uses(), (await entries()).length], [{ new: 40, old: 5 }, 40]);
    const rest = await admin(() => "new").rotateKeys("", signal);
    assert.ok(rest.kind === "done");
    assert.equal(rest.changed, 5);
    assert.deepEqual([await uses(), (await entries()).length], [{ new: 45 }, 45]);
  });

  test("a rotation ends when another key becomes the current one", async () => {
    for (const name of NAMES) await register(name, sealed("fine", "old"));
    let current = "new";
    const outcome = await admin(
      () => current,
      (cluster) => {
        if (cluster === "c19") current = "newer";
      },
    ).rotateKeys("", signal);
    assert.deepEqual(outcome, { kind: "otherKey", current: "newer" });
    assert.deepEqual(await uses(), { new: 20, old: 25 });
    const none = { keys: () => onlyDefault(null), table: store.clusters, loadReseal: async () => () => ({}) };
    assert.deepEqual(await createKeyAdmin(none).rotateKeys("", signal), { kind: "noKey" });
    assert.deepEqual(await createKeyAdmin(none).rotateKeys("new", signal), { kind: "noKey" });
    assert.deepEqual(await admin(() => "old").rotateKeys("newer", signal), { kind: "otherKey", current: "old" });
    assert.deepEqual(await uses(), { new: 20, old: 25 });
  });

  test("two rotations at the same time, and credentials that are replaced meanwhile, lose nothing", async () => {
    for (const name of NAMES) await register(name, sealed("first", "old"));
    const { rotateKeys } = admin(() => "new");
    const replace = async (name: string) => {
      const of = { name, labels: {}, flavors: [], version: 0, credentials: sealed("second", "old") };
      assert.equal((await store.clusters.update(of)).kind, "done");
    };
    const replaced = NAMES.filter((_, at) => at % 3 === 0);
    await Promise.all([rotateKeys("", signal), rotateKeys("", signal), ...replaced.map(replace)]);
    const last = await rotateKeys("", signal);
    assert.ok(last.kind === "done");
    assert.deepEqual(await uses(), { new: 45 });
    const { registered } = await store.clusters.listCredentials();
    for (const { name, credentials } of registered) {
      assert.equal(stringAt(credentials, "text"), replaced.includes(name) ? "second" : "first", name);
    }
  });
});
