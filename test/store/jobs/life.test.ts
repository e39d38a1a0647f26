import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";
import type { Db } from "../../../src/adapters/store/db/db.ts";
import type { Admin, JobReads } from "../../../src/api/ports.ts";
import type { Job } from "../../../src/core/job/job.ts";
import { gangOf } from "../../../src/core/plan/model/plan-gang.ts";
import type { Decision } from "../../../src/core/reconcile/decision.ts";
import type { IntakeStore } from "../../../src/intake/ports.ts";
import type { ExplainStore, PlannerStore } from "../../../src/planner/ports.ts";
import type { WatchStore } from "../../../src/watch/ports.ts";
import type { WorkerStore } from "../../../src/worker/ports.ts";
import { onEachDatabase } from "../../support/databases.ts";
import { OWN_KINDS } from "../../support/kinds.ts";
import { ledgerAt } from "../../support/ledger-at.ts";
import { snapshotOf } from "../../support/snapshot.ts";
import { freshStore, raiseQuotaEpoch, recordOne, type TestStore, takePlannerLease } from "../db.ts";
import { NO_LIMIT, NOW, newJob, plannedFor, sentOf } from "../jobs.ts";
import { entriesAfter } from "../log.ts";

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

  /** The type checker proves that the store fits every stage's ports. */
  test("the store fits the ports of the stages", () => {
    const intake: IntakeStore = store.intake;
    const planner: PlannerStore = store.planner;
    const worker: WorkerStore = store.worker;
    const watch: WatchStore = store.watch;
    const reads: Omit<JobReads, "refusalOf"> = store.reads;
    const explain: ExplainStore = store.explain;
    const admin: Admin = store.admin;
    for (const part of [intake, planner, worker, watch, reads, explain, admin]) assert.equal(typeof part, "object");
  });

  test("an admission in no cluster is stored with an empty cluster, as older programs read it", async () => {
    const job = newJob({ name: "train" });
    await store.intake.createJob({ job, sent: sentOf(job), requestId: "" });
    const planned = { ...plannedFor(job), cluster: null, allocations: [] };
    const plannerEpoch = await takePlannerLease(store, "p1");
    const { epoch } = await raiseQuotaEpoch(store);
    const record = { planned, allocations: [], fence: null, quotaEpoch: epoch, plannerEpoch, nowMs: NOW + 1 };
    assert.equal(await recordOne(store, record), "recorded");
    const stored = await db.query(STORED_CLUSTERS, [job.uid]);
    assert.deepEqual(stored, [{ of_job: "", of_admission: "", in_log: "", previous: "" }]);
    assert.equal((await store.worker.loadJob(job.uid))?.job.admissions[0]?.cluster, null);
    await store.watch.sequence();
    const { entries } = await entriesAfter(store, 1, 10);
    assert.deepEqual(
      entries.map((entry) => [entry.job.admissions[0]?.cluster, entry.previous?.cluster]),
      [[null, null]],
    );
  });

  test("a job is made, admitted, run, ended and forgotten, and its tokens are released", async () => {
    const { intake, worker, reads, watch } = store;
    const job = newJob({ name: "train" });
    assert.equal((await intake.createJob({ job, sent: sentOf(job), requestId: "r1" })).kind, "created");
    const plannerEpoch = await takePlannerLease(store, "p1");
    const { epoch } = await raiseQuotaEpoch(store);
    const snapshot = await snapshotOf(db);
    assert.deepEqual(snapshot.waiting, [gangOf(job, OWN_KINDS, { generation: 1, lastAdmission: 0 })]);
    assert.equal(snapshot.quotaEpoch, epoch);
    const planned = plannedFor(job);
    const allocations = planned.allocations.map((allocation) => ({
      ...allocation,
      ...NO_LIMIT,
      token: `job/${job.uid}/admission/1/step/0/${plannerEpoch}`,
    }));
    const fence = (BigInt(epoch) << 32n) + 1n;
    const record = { planned, allocations, fence, quotaEpoch: epoch, plannerEpoch, nowMs: NOW + 1 };
    assert.equal(await recordOne(store, record), "recorded");

    const buckets = await worker.takeBuckets("w1");
    assert.equal(buckets.length, 1024);
    assert.deepEqual(
      await worker.dueJobs(
        buckets.map((lease) => lease.bucket),
        NOW + 1,
        10,
      ),
      [job.uid],
    );
    const loaded = await worker.loadJob(job.uid);
    assert.ok(loaded);
    const lease = buckets.find(({ bucket }) => bucket === loaded.bucket);
    assert.ok(lease);
    assert.equal(loaded.job.status.phase, "ADMITTED");
    assert.deepEqual((await reads.getJob({ uid: job.uid }))?.tokens, [{ pool: "gpu/h100", amount: 4, fence }]);

    const step = (from: Job, changes: Partial<NonNullable<Decision["record"]>>): Decision => ({
      record: { status: from.status, admissions: from.admissions, events: [], deleteTimeMs: null, ...changes },
      forget: false,
      actions: [],
      recheckAtMs: null,
    });
    const ended = step(loaded.job, {
      status: { ...loaded.job.status, phase: "SUCCEEDED", completionTimeMs: NOW + 5 },
      admissions: loaded.job.admissions.map((admission) => ({ ...admission, state: "ended" as const })),
      events: [{ type: "Normal", reason: "PyTorchJobSucceeded", message: "done" }],
    });
    assert.equal(await worker.record(loaded.job, ended, lease, NOW + 5), "recorded");
    const second = await worker.loadJob(job.uid);
    assert.ok(second);
    assert.equal(second.job.version, 3);
    assert.deepEqual(await ledgerAt(store).unconfirmedReleases(10), []);
    const released = step(second.job, {
      admissions: second.job.admissions.map((admission) => ({
        ...admission,
        tokensReleasedMs: NOW + 6,
        goneMs: NOW + 6,
      })),
      deleteTimeMs: NOW + 6,
    });
    assert.equal(await worker.record(second.job, released, lease, NOW + 6), "recorded");
    const unconfirmed = await ledgerAt(store).unconfirmedReleases(10);
    assert.deepEqual(unconfirmed, [{ pool: allocations[0]?.pool, token: allocations[0]?.token, fence }]);
    await ledgerAt(store).confirmReleases(unconfirmed);
    assert.deepEqual(await ledgerAt(store).unconfirmedReleases(10), []);
    assert.deepEqual((await snapshotOf(db)).sums, []);

    const third = await worker.loadJob(job.uid);
    assert.ok(third);
    assert.equal(third.job.admissions[0]?.goneMs, NOW + 6);
    const forget: Decision = { record: null, forget: true, actions: [], recheckAtMs: null };
    assert.equal(await worker.record(third.job, forget, lease, NOW + 7), "recorded");
    assert.equal(await worker.loadJob(job.uid), null);
    assert.deepEqual(await intake.createJob({ job: newJob({ name: "train" }), sent: sentOf(job), requestId: "r1" }), {
      kind: "madeAndDeleted",
      uid: job.uid,
    });

    const { incarnation } = await watch.head();
    const head = { incarnation, position: 5 };
    assert.deepEqual(await watch.sequence(), { head, given: 5, oldestMs: NOW, more: false });
    const log = await watch.entriesAfter({ incarnation, position: 0 }, 100);
    assert.deepEqual(
      log.entries.map(({ position, type, job: shown, previous }) => [position, type, shown.version, previous?.phase]),
      [
        [1, "ADDED", 1, undefined],
        [2, "MODIFIED", 2, "WAITING"],
        [3, "MODIFIED", 3, "ADMITTED"],
        [4, "MODIFIED", 4, "SUCCEEDED"],
        [5, "DELETED", 5, "SUCCEEDED"],
      ],
    );
    const events = await reads.listEvents({ namespace: "team", name: "train", pageSize: 10, after: null });
    assert.ok(typeof events === "object");
    assert.deepEqual(
      events.events.map((event) => event.reason),
      ["PyTorchJobCreated", "PyTorchJobAdmitted", "PyTorchJobSucceeded", "PyTorchJobDeleted"],
    );
  });
});

const STORED_CLUSTERS = `
select j.cluster as of_job, a.cluster as of_admission, c.job #>> '{admissions,0,cluster}' as in_log,
       c.previous_cluster as previous
  from jobs j join admissions a on a.job_uid = j.uid join job_changes c on c.job_uid = j.uid
 where j.uid = $1 and c.version = 2`;
