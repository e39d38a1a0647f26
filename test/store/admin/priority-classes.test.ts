import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";
import type { Db } from "../../../src/adapters/store/db/db.ts";
import type { PriorityClassSettings } from "../../../src/core/admin/priority-class.ts";
import { FleetFollower } from "../../../src/planner/fleet-follower.ts";
import { onEachDatabase } from "../../support/databases.ts";
import { freshStore, type TestStore, takePlannerLease } from "../db.ts";
import { NOW, newJob, sentOf } from "../jobs.ts";

onEachDatabase((openDb) => {
  let db: Db;
  let store: TestStore;
  before(async () => {
    db = await openDb();
  });
  after(() => db.close());
  beforeEach(async () => {
    ({ store } = await freshStore(db));
  });

  const settings = (name: string, changes: Partial<PriorityClassSettings> = {}): PriorityClassSettings => ({
    ...{ name, value: 5, preemptionPolicy: "LOWER_PRIORITY", description: "", globalDefault: false },
    ...changes,
  });
  const create = (name: string, changes: Partial<PriorityClassSettings> = {}) =>
    store.priorityClasses.create(settings(name, changes), "ann");
  const change = (name: string, globalDefault: boolean, version = 0) =>
    store.priorityClasses.update(
      { name, description: "d", globalDefault, value: null, preemptionPolicy: null, version },
      "bob",
    );
  const defaults = async () =>
    (await store.priorityClasses.list()).filter(({ globalDefault }) => globalDefault).map(({ name }) => name);

  test("a class is kept with all that it has, listed by value, and gone once it is deleted", async () => {
    const made = await create("a", {
      value: -3,
      preemptionPolicy: "NEVER",
      description: "x\u0000y",
      globalDefault: true,
    });
    assert.ok(made.kind === "done");
    const times = { version: 1, createTimeMs: NOW, updateTimeMs: NOW };
    const a = settings("a", { value: -3, preemptionPolicy: "NEVER", description: "x\ufffdy", globalDefault: true });
    assert.deepEqual(made.record, { ...a, ...times });
    assert.deepEqual(await store.priorityClasses.get("a"), made.record);
    await create("b");
    assert.deepEqual(
      (await store.priorityClasses.list()).map(({ name }) => name),
      ["b", "a"],
    );
    assert.equal((await create("a")).kind, "exists");
    assert.equal((await store.priorityClasses.remove("a", "cleo")).kind, "done");
    assert.equal((await store.priorityClasses.remove("a", "cleo")).kind, "notFound");
    assert.deepEqual([await store.priorityClasses.get("a"), await defaults()], [null, []]);
  });

  test("one class at most is the default, also if several are made or changed at once", async () => {
    const made = await Promise.all(["a", "b", "c"].map((name) => create(name, { globalDefault: true })));
    assert.deepEqual(made.map(({ kind }) => kind).sort(), ["done", "otherDefault", "otherDefault"]);
    const [only = ""] = await defaults();
    assert.equal((await change(only, false)).kind, "done");
    assert.deepEqual(await defaults(), []);
    for (const name of ["a", "b", "c"].filter((one) => one !== only)) await create(name);
    const changed = await Promise.all(["a", "b", "c"].map((name) => change(name, true)));
    assert.deepEqual(changed.map(({ kind }) => kind).sort(), ["done", "otherDefault", "otherDefault"]);
    assert.equal((await defaults()).length, 1);
  });

  test("a change tells a class that does not exist, and another version", async () => {
    assert.equal((await change("a", false)).kind, "notFound");
    await create("a");
    assert.equal((await change("a", true, 2)).kind, "stale");
    const changed = await change("a", true, 1);
    assert.ok(changed.kind === "done");
    assert.deepEqual([changed.record.version, changed.record.description, await defaults()], [2, "d", ["a"]]);
  });

  test("an update that changes nothing leaves no entry and no new version", async () => {
    await create("a", { description: "d", globalDefault: true });
    const before = await store.priorityClasses.get("a");
    assert.deepEqual(await change("a", true), { kind: "done", record: before });
    const filter = { actor: null, action: "UpdatePriorityClass" as const, subject: "a" };
    const page = await store.pools.listAudit({ filter, pageSize: 10, after: null });
    assert.ok(page !== "badCursor");
    assert.deepEqual([page.entries, await store.priorityClasses.get("a")], [[], before]);
  });

  test("each change leaves who made it, and the class before and after it", async () => {
    await create("a");
    await change("a", true);
    await change("b", true);
    await store.priorityClasses.remove("a", "cleo");
    const filter = { actor: null, action: null, subject: "a" };
    const page = await store.pools.listAudit({ filter, pageSize: 9, after: null });
    assert.ok(page !== "badCursor");
    const [first, second] = [settings("a"), settings("a", { description: "d", globalDefault: true })];
    assert.deepEqual(
      page.entries.map(({ actor, action, details }) => [actor, action, details]),
      [
        ["cleo", "DeletePriorityClass", { before: second, after: null }],
        ["bob", "UpdatePriorityClass", { before: first, after: second }],
        ["ann", "CreatePriorityClass", { before: null, after: first }],
      ],
    );
  });

  test("a submission knows the default class and each class by name", async () => {
    assert.equal((await store.intake.facts({ namespace: "team" })).priorityClasses.default, null);
    await create("a", { globalDefault: true });
    const { priorityClasses } = await store.intake.facts({ namespace: "team" });
    assert.deepEqual(priorityClasses.default, { name: "a", value: 5, preemptionPolicy: "LOWER_PRIORITY" });
    assert.equal((await priorityClasses.find("a"))?.value, 5);
    assert.equal(await priorityClasses.find("b"), null);
    assert.deepEqual(await priorityClasses.names(), ["a"]);
  });

  test("the planner's state tells which gangs never preempt", async () => {
    const plain = newJob({ name: "plain" });
    const patient = newJob({ name: "patient" });
    const spec = { ...patient.spec, priorityClassName: "p", preemptionPolicy: "NEVER" as const };
    for (const job of [plain, { ...patient, spec }]) {
      await store.intake.createJob({ job, sent: sentOf(job), requestId: "" });
    }
    await takePlannerLease(store, "p1");
    const follower = new FleetFollower(store.planner);
    await follower.catchUp();
    const never = (uid: string) => follower.planner.gangOf(uid)?.neverPreempts;
    assert.deepEqual([never(plain.uid), never(patient.uid)], [undefined, true]);
  });
});
