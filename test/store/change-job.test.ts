import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";
import type { Db } from "../../src/adapters/store/db.ts";
import type { Job } from "../../src/core/job/job.ts";
import { changeJob, type WantedChange } from "../../src/core/kinds/change-job.ts";
import { kindOf } from "../../src/core/kinds/registry.ts";
import { onEachDatabase } from "../support/databases.ts";
import { freshStore, raiseQuotaEpoch, type TestStore, takePlannerLease } from "./db.ts";
import { FLAVOR, NOW, newJob, plannedFor, sentOf } from "./jobs.ts";

/** Four workers of one GPU each, which may come and go. */
function elasticJob(): Job {
  const job = newJob({ name: "train", labels: { team: "a" } });
  const template = {
    spec: { containers: [{ name: "tensorflow", resources: { limits: { "nvidia.com/gpu": 1 } } }] },
  };
  const replicaSpecs = { Worker: { replicas: 4, restartPolicy: "OnFailure" as const, template } };
  return { ...job, spec: { ...job.spec, kind: "TFJob", kindSpec: { enableDynamicWorker: true }, replicaSpecs } };
}

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

  const change = (job: Job, wanted: Partial<WantedChange>, nowMs = NOW + 1) =>
    store.intake.changeJob(
      job,
      (found) => changeJob(found, kindOf(found.spec.kind)!, { version: null, ...wanted }, nowMs),
      nowMs,
    );
  const load = async (job: Job) => (await store.worker.loadJob(job.uid))!.job;

  /** A job on board with all its members, and how it was granted. */
  async function boarded(job: Job) {
    await store.intake.createJob({ job, sent: sentOf(job), requestId: "" });
    const plannerEpoch = await takePlannerLease(store, "p1");
    const { epoch } = await raiseQuotaEpoch(store);
    const planned = plannedFor(job);
    const lines = planned.lines.map((line) => ({
      ...line,
      token: `job/${job.uid}/admission/1/step/1/${plannerEpoch}`,
      caps: { project: null, namespace: null },
      leaseMs: null,
    }));
    const fence = (BigInt(epoch) << 32n) + 1n;
    const record = { planned, lines, fence, quotaEpoch: epoch, plannerEpoch, nowMs: NOW + 1 };
    assert.equal(await store.planner.recordAdmission(record), "recorded");
    return { epoch, fence };
  }

  test("a change is all in one version: spec, columns that lists go by, event, and a time to look again", async () => {
    const job = elasticJob();
    await store.intake.createJob({ job, sent: sentOf(job), requestId: "" });
    const changed = await change(job, { priority: 7, suspend: true, labels: { team: "b" }, replicas: { worker: 2 } });
    assert.equal(changed.kind, "changed");
    const found = await load(job);
    assert.deepEqual(
      [found.version, found.spec.priority, found.spec.runPolicy.suspend, found.labels],
      [2, 7, true, { team: "b" }],
    );
    assert.equal(found.spec.replicaSpecs["Worker"]?.replicas, 2);
    const filter = { namespace: "", names: [], kinds: [], phases: [], queue: "", cluster: "", labels: { team: "b" } };
    const listed = await store.reads.listJobs({ filter, order: "priority desc", pageSize: 10, after: null });
    assert.ok(listed !== "badCursor");
    assert.deepEqual(
      listed.jobs.map(({ job: one }) => one.spec.priority),
      [7],
    );
    const lease = (await store.worker.takeBuckets("w1")).map(({ bucket }) => bucket);
    assert.deepEqual(await store.worker.dueJobs(lease, NOW + 1, 10), [job.uid]);
    assert.equal((await change(job, { priority: 7 })).kind, "unchanged");
    assert.equal((await change(job, { version: 1, priority: 8 })).kind, "stale");
    assert.equal((await load(job)).version, 2);
    assert.equal((await change({ ...job, name: "other" }, { priority: 1 })).kind, "notFound");
  });

  test("who leaves a filter by its labels is told from the log, and the entry shows the job as it was then", async () => {
    const job = elasticJob();
    await store.intake.createJob({ job, sent: sentOf(job), requestId: "" });
    await change(job, { labels: { team: "b" } });
    await change(job, { priority: 3 });
    await store.watch.sequence();
    const { entries } = await store.watch.entriesAfter(0, 10);
    assert.deepEqual(
      entries.map(({ job: one, previous }) => [one.labels, previous?.labels ?? null, one.spec.priority]),
      [
        [{ team: "a" }, null, 0],
        [{ team: "b" }, { team: "a" }, 0],
        [{ team: "b" }, null, 3],
      ],
    );
  });

  test("a gang that gives members up keeps the tokens of the others, under the fence that they have", async () => {
    const job = elasticJob();
    const { epoch, fence } = await boarded(job);
    await change(job, { replicas: { Worker: 1 } });
    const { job: found, bucket } = (await store.worker.loadJob(job.uid))!;
    const lease = (await store.worker.takeBuckets("w1")).find((one) => one.bucket === bucket)!;
    const record = {
      status: found.status,
      admissions: found.admissions.map((admission) => ({ ...admission, members: { Worker: 1 } })),
      events: [],
      deleteTimeMs: null,
    };
    const decision = { record, forget: false, actions: [], recheckAtMs: null };
    assert.equal(await store.worker.record(found, decision, lease, NOW + 9), "recorded");
    const shown = await store.reads.getJob({ uid: job.uid });
    assert.deepEqual(
      shown?.tokens.map((token) => [token.pool, token.amount, token.fence]),
      [[FLAVOR, 1, fence]],
    );
    const snapshot = await store.planner.snapshot();
    assert.equal(snapshot.quotaEpoch, epoch);
    const ofQueues = snapshot.sums.filter(({ scope }) => scope.kind === "queue");
    assert.deepEqual(ofQueues, [{ scope: { kind: "queue", pool: FLAVOR, queue: "research" }, used: 1 }]);
  });
});
