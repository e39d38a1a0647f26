import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Db } from "../../../src/adapters/store/db/db.ts";
import type { JobStatus } from "../../../src/core/job/status.ts";
import { onEachDatabase } from "../../support/databases.ts";
import { freshStore, type TestStore } from "../db.ts";
import { NO_STATUS, newJob, sentOf } from "../jobs.ts";

onEachDatabase((openDb) => {
  let db: Db;
  let store: TestStore;
  before(async () => {
    db = await openDb();
    store = (await freshStore(db)).store;
  });
  after(() => db.close());

  async function submit(status: Partial<JobStatus>): Promise<void> {
    const job = newJob({ status: { ...NO_STATUS, ...status } });
    await store.intake.createJob({ job, sent: sentOf(job), requestId: "" });
  }

  test("jobs that have not ended are counted by phase, and those that wait by reason", async () => {
    assert.deepEqual(await store.survey.jobs(), []);
    const waiting = { reason: "NoCapacity", message: "", refusals: [], sinceMs: 1 } as never;
    await submit({ waiting });
    await submit({ waiting });
    await submit({ waiting: null });
    await submit({ phase: "RUNNING" });
    await submit({ phase: "SUSPENDED" });
    await submit({ phase: "SUCCEEDED", completionTimeMs: 1 });
    assert.deepEqual(await store.survey.jobs(), [
      { phase: "RUNNING", reason: "", jobs: 1 },
      { phase: "SUSPENDED", reason: "", jobs: 1 },
      { phase: "WAITING", reason: "NoCapacity", jobs: 2 },
      { phase: "WAITING", reason: "NotEvaluated", jobs: 1 },
    ]);
  });
});
