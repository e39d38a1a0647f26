import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Db } from "../../../src/adapters/store/db/db.ts";
import { onEachDatabase } from "../../support/databases.ts";
import { freshStore } from "../db.ts";
import { newJob, sentOf } from "../jobs.ts";

onEachDatabase((openDb) => {
  let db: Db;
  before(async () => {
    db = await openDb();
  });
  after(() => db.close());

  test("jobs and admins create namespaces up to a bound, and existing ones stay usable", async () => {
    const { store } = await freshStore(db, { namespacesMax: 2 });
    const request = (namespace: string, dryRun = false) => {
      const job = newJob({ namespace });
      return { job, sent: sentOf(job), requestId: `for-${job.uid}`, dryRun };
    };
    const kindOf = async (namespace: string) => (await store.intake.createJob(request(namespace))).kind;
    assert.deepEqual([await kindOf("one"), await kindOf("two")], ["created", "created"]);
    assert.deepEqual(await store.intake.createJob(request("three")), { kind: "tooManyNamespaces", max: 2 });
    assert.equal(await kindOf("one"), "created");

    const batch = await store.intake.createJobs([request("three"), request("two"), request("three", true)]);
    assert.deepEqual(
      batch.map((outcome) => outcome?.kind ?? null),
      [null, "created", null],
    );
    const dry = await store.intake.createJobs([request("one", true)]);
    assert.equal(dry[0]?.kind, "created");

    const namespace = (name: string) => ({ name, project: "default", defaultQueue: "research" });
    assert.deepEqual(await store.admin.createNamespace(namespace("three")), { kind: "full", max: 2 });
    assert.deepEqual(await store.admin.createNamespace(namespace("two")), { kind: "exists" });
    assert.deepEqual(
      (await store.admin.listNamespaces()).map(({ name }) => name),
      ["one", "two"],
    );
    await db.query("delete from jobs where namespace = 'two'");
    assert.equal((await store.admin.deleteNamespace("two")).kind, "done");
    assert.equal(await kindOf("three"), "created");
  });
});
