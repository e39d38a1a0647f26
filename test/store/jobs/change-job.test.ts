import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";
import type { Db } from "../../../src/adapters/store/db/db.ts";
import type { Job } from "../../../src/core/job/job.ts";
import { changeJob, type WantedChange } from "../../../src/core/kinds/change-job.ts";
import { onEachDatabase } from "../../support/databases.ts";
import { OWN_KINDS } from "../../support/kinds.ts";
import { snapshotOf } from "../../support/snapshot.ts";
import { freshStore, raiseQuotaEpoch, recordOne, type TestStore, takePlannerLease } from "../db.ts";
import { FLAVOR, NOW, newJob, plannedFor, sentOf } from "../jobs.ts";
import { entriesAfter } from "../log.ts";

/** Four elastic workers of one GPU each. */
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
      (found) => changeJob(found, OWN_KINDS.kindOf(found.spec.kind)!, { version: null, ...wanted }, nowMs),
      nowMs,
    );
  const load = async (job: Job) => (await store.worker.loadJob(job.uid))!.job;

  /** An admitted job with all its members, and its grant. */
  async function admittedJob(job: Job) {
    await store.intake.createJob({ job, sent: sentOf(job), requestId: "" });
    const plannerEpoch = await takePlannerLease(store, "p1");
    const { epoch } = await raiseQuotaEpoch(store);
    const planned = plannedFor(job);
    const allocations = planned.allocations.map((allocation) => ({
      ...allocation,
      token: `job/${job.uid}/admission/1/step/1/${plannerEpoch}`,
      caps: { project: null, namespace: null },
      leaseMs: null,
    }));
    const fence = (BigInt(epoch) << 32n) + 1n;
    const record = { planned, allocations, fence, quotaEpoch: epoch, plannerEpoch, nowMs: NOW + 1 };
    assert.equal(await recordOne(store, record), "recorded");
    return { epoch, fence };
  }

  test("one version holds a whole change: spec, columns of lists, event, and a time to look again", async () => {
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
    const filter = { namespace: "", names: [], kinds: [], phases: [], queue: "", cluster: null, labels: { team: "b" } };
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

  test("the log's entry tells that new labels took a job out of a filter, and shows the job with them", async () => {
    const job = elasticJob();
    await store.intake.createJob({ job, sent: sentOf(job), requestId: "" });
    await change(job, { labels: { team: "b" } });
    await change(job, { priority: 3 });
    await store.watch.sequence();
    const { entries } = await entriesAfter(store, 0, 10);
    assert.deepEqual(
      entries.map(({ job: one, previous }) => [one.labels, previous?.labels ?? null, one.spec.priority]),
      [
        [{ team: "a" }, null, 0],
        [{ team: "b" }, { team: "a" }, 0],
        [{ team: "b" }, null, 3],
      ],
    );
  });

  test("a gang that gives members up keeps the tokens of the others under their fence", async () => {
    const job = elasticJob();
    const { epoch, fence } = await admittedJob(job);
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
    const snapshot = await snapshotOf(db);
    assert.equal(snapshot.quotaEpoch, epoch);
    const ofQueues = snapshot.sums.filter(({ scope }) => scope.kind === "queue");
    assert.deepEqual(ofQueues, [{ scope: { kind: "queue", pool: FLAVOR, queue: "research" }, used: 1 }]);
  });
});
