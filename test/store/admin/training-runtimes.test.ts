import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";
import type { Db } from "../../../src/adapters/store/db/db.ts";
import { RUNTIMES_MAX } from "../../../src/core/admin/training-runtime.ts";
import { SHIPPED_RUNTIMES } from "../../../src/core/kinds/trainjob/shipped-runtimes.ts";
import type { RuntimeSettings } from "../../../src/core/kinds/trainjob/training-runtime.ts";
import { contentHash } from "../../../src/runtime/content-hash.ts";
import { onEachDatabase } from "../../support/databases.ts";
import { freshStore, type TestStore } from "../db.ts";
import { NOW } from "../jobs.ts";

const SHIPPED = SHIPPED_RUNTIMES.map(({ name }) => name);

onEachDatabase((openDb) => {
  let db: Db;
  let store: TestStore;
  before(async () => {
    db = await openDb();
  });
  after(() => db.close());
  beforeEach(async () => {
    ({ store } = await freshStore(db));
    for (const name of ["nlp", "vision"]) {
      await store.admin.createNamespace({ name, project: "default", defaultQueue: "default" });
    }
  });

  const settings = (namespace: string, name: string, changes: Partial<RuntimeSettings> = {}): RuntimeSettings => ({
    ...{ namespace, name, labels: {} },
    spec: { mlPolicy: { numNodes: 2 }, template: { spec: { replicatedJobs: [{ name: "node" }] } } },
    ...changes,
  });
  const create = (namespace: string, name: string, changes: Partial<RuntimeSettings> = {}) =>
    store.runtimes.create(settings(namespace, name, changes));
  const update = (namespace: string, name: string, labels: Record<string, string>, version = 0) =>
    store.runtimes.update({ ...settings(namespace, name, { labels }), version });
  const listAll = async (namespaces: readonly string[] | null, pageSize = 100) => {
    const names: string[] = [];
    for (let next: string | null | undefined; next !== null; ) {
      const page = await store.runtimes.list({ namespaces, after: next ?? null, pageSize });
      assert.ok(page !== "badCursor");
      assert.ok(page.runtimes.length <= pageSize);
      names.push(...page.runtimes.map(({ namespace, name }) => `${namespace}/${name}`));
      next = page.next;
    }
    return names;
  };
  const entries = async () => {
    const page = await store.pools.listAudit({
      filter: { actor: null, action: null, subject: null },
      pageSize: 20,
      after: null,
    });
    assert.ok(page !== "badCursor");
    return page.entries.filter(({ action }) => action !== "CreateNamespace" && action !== "CreateQueue");
  };

  test("a runtime is kept with all that it has, and found until it is deleted", async () => {
    const spec = { template: { text: "x\u0000y", spec: { replicatedJobs: [{ name: "node" }] } } };
    const made = await create("nlp", "torch", { labels: { team: "nlp" }, spec });
    assert.ok(made.kind === "done");
    const record = { ...settings("nlp", "torch", { labels: { team: "nlp" }, spec }), version: 1, createTimeMs: NOW };
    assert.deepEqual(made.record, record);
    assert.deepEqual(await store.runtimes.find({ namespace: "nlp", name: "torch" }), record);
    assert.equal(await store.runtimes.find({ namespace: "vision", name: "torch" }), null);
    assert.equal(await store.runtimes.find({ namespace: "", name: "torch" }), null);
    assert.equal((await create("nlp", "torch")).kind, "exists");
    assert.equal((await create("", "torch")).kind, "done");
    assert.equal((await create("absent", "torch")).kind, "unknownNamespace");
    assert.equal((await store.runtimes.remove({ namespace: "nlp", name: "torch" })).kind, "done");
    assert.equal((await store.runtimes.remove({ namespace: "nlp", name: "torch" })).kind, "notFound");
    assert.equal(await store.runtimes.find({ namespace: "nlp", name: "torch" }), null);
    assert.notEqual(await store.runtimes.find({ namespace: "", name: "torch" }), null);
  });

  test("a change tells a runtime that does not exist, and another version", async () => {
    assert.equal((await update("nlp", "torch", {})).kind, "notFound");
    await create("nlp", "torch");
    assert.equal((await update("nlp", "torch", { a: "b" }, 2)).kind, "stale");
    const changed = await update("nlp", "torch", { a: "b" }, 1);
    assert.ok(changed.kind === "done");
    assert.deepEqual([changed.record.version, changed.record.labels], [2, { a: "b" }]);
    const again = await update("nlp", "torch", { a: "b" });
    assert.deepEqual(again, changed, "a change that changes nothing makes no version");
  });

  test("a shipped runtime is always there, and cannot be made, changed or deleted", async () => {
    for (const shipped of SHIPPED_RUNTIMES) {
      assert.equal(await store.runtimes.find(shipped), shipped);
      assert.equal((await create("", shipped.name)).kind, "shipped");
      assert.equal((await update("", shipped.name, {})).kind, "shipped");
      assert.equal((await store.runtimes.remove(shipped)).kind, "shipped");
    }
    assert.equal((await create("nlp", "torch-distributed")).kind, "done", "a namespace may have the name");
  });

  test("lists have the runtimes of namespaces and of the installation in one order, on pages of any size", async () => {
    for (const name of ["zeta", "a-b", "a.b", "a"]) await create("", name);
    for (const namespace of ["vision", "nlp"]) for (const name of ["torch", "jax"]) await create(namespace, name);
    const installation = [...SHIPPED, "zeta", "a-b", "a.b", "a"].sort().map((name) => `/${name}`);
    const nlp = ["nlp/jax", "nlp/torch"];
    const all = [...installation, ...nlp, "vision/jax", "vision/torch"];
    for (const pageSize of [1, 3, 100]) {
      assert.deepEqual(await listAll([""], pageSize), installation);
      assert.deepEqual(await listAll(["nlp", ""], pageSize), [...installation, ...nlp]);
      assert.deepEqual(await listAll(null, pageSize), all);
    }
    assert.deepEqual(await listAll(["nlp"]), nlp);
    assert.equal(await store.runtimes.list({ namespaces: null, after: "x", pageSize: 1 }), "badCursor");
  });

  test("a shipped runtime hides a stored one of its name", async () => {
    await create("", "own");
    await db.query("update training_runtimes set name = 'torch-distributed' where name = 'own'");
    assert.equal((await store.runtimes.find({ namespace: "", name: "torch-distributed" }))?.isShipped, true);
    assert.deepEqual(
      await listAll([""]),
      SHIPPED.map((name) => `/${name}`),
    );
  });

  test("creates at once never exceed the most runtimes of a namespace or of the installation", async () => {
    for (const namespace of ["nlp", ""]) {
      await db.query(
        `insert into training_runtimes (namespace, name, labels, spec, create_ms)
         select $1, 'r-' || n, '{}', '{}', 0 from generate_series(1, $2::int) n`,
        [namespace, RUNTIMES_MAX - 2],
      );
      const made = await Promise.all(["a", "b", "c", "d"].map((name) => create(namespace, name)));
      assert.deepEqual(made.map(({ kind }) => kind).sort(), ["done", "done", "full", "full"]);
      const tried = await store.runtimes.create(settings(namespace, "e"), { isTried: true });
      assert.deepEqual(tried, { kind: "full", max: RUNTIMES_MAX });
    }
    assert.equal((await create("vision", "a")).kind, "done");
  });

  test("a change that is only tried answers as the change would, and leaves nothing", async () => {
    const tried = await store.runtimes.create(settings("nlp", "torch"), { isTried: true });
    assert.ok(tried.kind === "done");
    assert.equal(await store.runtimes.find({ namespace: "nlp", name: "torch" }), null);
    await create("nlp", "torch");
    const change = { ...settings("nlp", "torch", { labels: { a: "b" } }), version: 0 };
    const updated = await store.runtimes.update(change, { isTried: true });
    assert.ok(updated.kind === "done");
    assert.deepEqual([updated.record.version, updated.record.labels], [2, { a: "b" }]);
    assert.equal((await store.runtimes.find({ namespace: "nlp", name: "torch" }))?.version, 1);
    assert.deepEqual(
      (await entries()).map(({ action }) => action),
      ["CreateRuntime"],
    );
  });

  test("each change leaves the runtime before and after it, without its templates", async () => {
    await create("nlp", "torch");
    await update("nlp", "torch", { a: "b" });
    await store.runtimes.remove({ namespace: "nlp", name: "torch" });
    const { spec } = settings("nlp", "torch");
    const first = { labels: {}, mlPolicy: { numNodes: 2 }, groups: ["node"], specHash: contentHash(spec) };
    const second = { ...first, labels: { a: "b" } };
    assert.deepEqual(
      (await entries()).map(({ action, subject, details }) => [action, subject, details]),
      [
        ["DeleteRuntime", "nlp/torch", { before: second, after: null }],
        ["UpdateRuntime", "nlp/torch", { before: first, after: second }],
        ["CreateRuntime", "nlp/torch", { before: null, after: first }],
      ],
    );
  });

  test("a namespace takes its runtimes with it, and its entry names them", async () => {
    for (const name of ["torch", "jax"]) await create("nlp", name);
    await create("vision", "torch");
    assert.equal((await store.admin.deleteNamespace("nlp")).kind, "done");
    assert.deepEqual(await listAll(["nlp", "vision"]), ["vision/torch"]);
    const [entry] = await entries();
    assert.deepEqual([entry?.action, entry?.details["trainingRuntimes"]], ["DeleteNamespace", ["jax", "torch"]]);
  });
});
