import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";
import type { Db } from "../../../src/adapters/store/db/db.ts";
import type { Job } from "../../../src/core/job/job.ts";
import type { PlannedEviction } from "../../../src/core/plan/model/plan-types.ts";
import type { StopPolicy } from "../../../src/core/plan/model/queue-stop.ts";
import { onEachDatabase, onPostgres } from "../../support/databases.ts";
import { gangOfPlanned } from "../../support/planned-gang.ts";
import { snapshotOf } from "../../support/snapshot.ts";
import { NOW, plannedFor } from "../jobs.ts";
import { freshPlanner, type TestPlanner } from "../planner-fixture.ts";

/** What tests do with queue `research`, and with queue `below` it. */
function actions(fixture: () => TestPlanner) {
  const record = (job: Job) => {
    const { queue } = job.spec.runPolicy.schedulingPolicy;
    const planned = plannedFor(job, { allocations: [] });
    return { planned, gang: gangOfPlanned(planned, { queue }), allocations: [], fence: null, chain: null };
  };
  return {
    admit: (jobs: readonly Job[]) => {
      const { store, quotaEpoch, plannerEpoch } = fixture();
      const batch = { records: jobs.map(record), counters: new Map([["east", 0]]), quotaEpoch, plannerEpoch };
      return store.planner.recordAdmissions({ ...batch, nowMs: NOW });
    },
    evict: (jobs: readonly Job[], changes: Partial<PlannedEviction> & { readonly plannerEpoch?: number } = {}) => {
      const { plannerEpoch = fixture().plannerEpoch, ...rest } = changes;
      const evictions = jobs.map(({ uid: jobUid, spec }) => {
        const { queue } = spec.runPolicy.schedulingPolicy;
        return { jobUid, queue, admission: 1, reason: "QueueStopped", message: "queue research is stopped", ...rest };
      });
      return fixture().store.planner.recordEvictions(evictions, plannerEpoch, NOW + 5);
    },
    stop: async (name: string, stopPolicy: StopPolicy) => {
      const { store } = fixture();
      const queue = await store.admin.getQueue(name);
      assert.ok(queue);
      const changed = await store.admin.updateQueue({ ...queue, stopPolicy, version: 0 });
      assert.ok(changed.kind === "done");
      return changed.record;
    },
    addBelow: () => {
      const below = { name: "below", parent: "research", strategy: "STRICT_FIFO" as const, quotas: [] };
      return fixture().store.admin.createQueue(below);
    },
  };
}

onEachDatabase((openDb) => {
  let db: Db;
  let planner: TestPlanner;
  const { admit, evict, stop, addBelow } = actions(() => planner);
  before(async () => {
    db = await openDb();
  });
  after(() => db.close());
  beforeEach(async () => {
    planner = await freshPlanner(db);
  });

  test("a queue tells its stop policy and what stops it; a change that names none keeps it", async () => {
    await addBelow();
    const stopped = await stop("research", "HOLD");
    assert.deepEqual([stopped.stopPolicy, stopped.stoppedBy], ["HOLD", "research"]);
    const { stopPolicy: _, ...settings } = stopped;
    const kept = await planner.store.admin.updateQueue(settings);
    assert.ok(kept.kind === "done");
    assert.equal(kept.record.stopPolicy, "HOLD");
    const below = await planner.store.admin.getQueue("below");
    assert.deepEqual([below?.stopPolicy, below?.stoppedBy], ["NONE", "research"]);
    assert.equal((await stop("research", "NONE")).stoppedBy, null);
  });

  test("a queue keeps the number of jobs that it may run, and the planner reads it", async () => {
    const queue = await planner.store.admin.getQueue("research");
    assert.ok(queue);
    assert.equal(queue.maxRunningJobs, null);
    const limited = await planner.store.admin.updateQueue({ ...queue, maxRunningJobs: 3 });
    assert.ok(limited.kind === "done");
    assert.equal(limited.record.maxRunningJobs, 3);
    const { queues } = await snapshotOf(db);
    assert.equal(queues.find(({ name }) => name === "research")?.maxRunningJobs, 3);
    const excluded = await planner.store.admin.updateQueue({ ...limited.record, maxRunningJobs: null });
    assert.ok(excluded.kind === "done");
    assert.equal(excluded.record.maxRunningJobs, null);
  });

  test("no gang is recorded in a queue that is stopped, or below one; others of the batch are", async () => {
    await addBelow();
    const [a, b] = [await planner.submit(), await planner.submit({ queue: "below" })];
    await stop("research", "HOLD");
    assert.deepEqual(await admit([a, b]), ["stale", "stale"]);
    await stop("research", "NONE");
    await stop("below", "HOLD");
    assert.deepEqual(await admit([b, a]), ["stale", "recorded"]);
  });

  test("an eviction is recorded once, wakes the worker's look, and leaves the admission live until then", async () => {
    const job = await planner.submit();
    await admit([job]);
    await stop("research", "HOLD_AND_DRAIN");
    assert.deepEqual(await evict([job]), [job.uid]);
    const requested = await planner.load(job.uid);
    assert.deepEqual(requested.status.eviction, {
      admission: 1,
      reason: "QueueStopped",
      message: "queue research is stopped",
    });
    assert.equal(requested.admissions[0]?.state, "live");
    const [row] = await db.query<{ at: number }>("select recheck_at_ms as at from jobs where uid = $1", [job.uid]);
    assert.equal(row?.at, NOW + 5);
    const [gang] = await planner.gangs([job.uid]);
    assert.equal(gang?.evicted, true);
    assert.deepEqual(await evict([job]), [], "a second request changes nothing");
    assert.equal((await planner.load(job.uid)).version, requested.version);
  });

  test("no eviction is recorded of another admission, by another planner, or where nothing drains", async () => {
    const job = await planner.submit();
    await admit([job]);
    await stop("research", "HOLD_AND_DRAIN");
    assert.deepEqual(await evict([job], { admission: 2 }), []);
    assert.deepEqual(await evict([job], { plannerEpoch: planner.plannerEpoch + 1 }), []);
    for (const policy of ["HOLD", "NONE"] as const) {
      await stop("research", policy);
      assert.deepEqual(await evict([job]), []);
    }
    assert.equal((await planner.load(job.uid)).status.eviction, undefined);
  });
});

onPostgres((openDb) => {
  test("once a queue is stopped, no admission that was under way is recorded any more", async (t) => {
    const db = await openDb();
    t.after(() => db.close());
    const planner = await freshPlanner(db);
    const { admit, stop } = actions(() => planner);
    for (let round = 0; round < 10; round += 1) {
      const job = await planner.submit();
      const admissions = async () => (await planner.load(job.uid)).admissions.length;
      const stopping = stop("research", "HOLD").then(admissions);
      await Promise.all([stopping, admit([job])]);
      assert.equal(await admissions(), await stopping, "nothing is admitted after the call has returned");
      const [outcome] = await admit([await planner.submit()]);
      assert.equal(outcome, "stale");
      await stop("research", "NONE");
    }
  });
});
