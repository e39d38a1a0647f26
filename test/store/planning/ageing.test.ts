import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";
import fc from "fast-check";
import type { Db } from "../../../src/adapters/store/db/db.ts";
import type { JobFilter } from "../../../src/core/job/request/filter.ts";
import { DEFAULT_POLICY } from "../../../src/core/plan/model/queue-policy.ts";
import { effectivePriority } from "../../../src/core/plan/queues/ageing.ts";
import { FleetFollower } from "../../../src/planner/fleet-follower.ts";
import { onEachDatabase } from "../../support/databases.ts";
import { freshStore, type TestStore, takePlannerLease } from "../db.ts";
import { NOW, newJob, sentOf } from "../jobs.ts";

const ALL: JobFilter = { namespace: "", names: [], kinds: [], phases: [], queue: "", cluster: null, labels: {} };
const AGEING = { intervalMs: 60_000, step: 2, limit: 10 };

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

  const setAgeing = async (ageing: typeof AGEING | null) => {
    const policy = { ...DEFAULT_POLICY, ageing };
    const queue = { name: "research", strategy: "BEST_EFFORT_FIFO" as const, quotas: [], policy, version: 0 };
    assert.equal((await store.admin.updateQueue(queue)).kind, "done");
  };
  const submit = async (name: string, priority: number, waitedMs: number) => {
    const job = newJob({ name, priority, createTimeMs: NOW - waitedMs });
    await store.intake.createJob({ job, sent: sentOf(job), requestId: "" });
  };
  const setClass = (value: number) => {
    const settings = { value, preemptionPolicy: "LOWER_PRIORITY" as const, description: "", globalDefault: false };
    return store.priorityClasses.create({ name: `class-${value}`, ...settings }, "test");
  };
  const listed = async () => {
    const page = await store.reads.listJobs({ filter: ALL, order: "name", pageSize: 100, after: null });
    assert.ok(page !== "badCursor");
    return page.jobs;
  };

  test("positions, effective priorities and the first waiting jobs go by ageing, if the queue has it", async () => {
    await submit("old", 0, 180_000);
    await submit("new", 5, 0);
    const places = async () =>
      (await listed()).map(({ job, position, effectivePriority: effective }) => [job.name, position, effective]);
    const first = async () => (await store.explain.firstWaiting({ queue: "research", max: 1 })).map(({ name }) => name);
    assert.deepEqual(await places(), [
      ["new", 1, 5],
      ["old", 2, 0],
    ]);
    assert.deepEqual(await first(), ["new"]);
    await setAgeing(AGEING);
    assert.deepEqual(await places(), [
      ["new", 2, 5],
      ["old", 1, 6],
    ]);
    assert.deepEqual(await first(), ["old"]);
    const alone = await store.reads.getJob({ namespace: "team", name: "old" });
    assert.deepEqual([alone?.position, alone?.effectivePriority], [1, 6]);
    await setClass(4);
    assert.deepEqual(await places(), [
      ["new", 1, 5],
      ["old", 2, 3],
    ]);
  });

  test("the database computes effective priorities as the plan does", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.record({
          intervalMs: fc.integer({ min: 1_000, max: 10_000_000 }),
          step: fc.constantFrom(1, 7, 1_000_000_000),
          limit: fc.integer({ min: 1, max: 1_000_000_000 }),
        }),
        fc.array(fc.tuple(fc.integer({ min: -20, max: 2_000_000_000 }), fc.nat(100_000_000)), { minLength: 1 }),
        fc.uniqueArray(fc.integer({ min: -10, max: 30 }), { maxLength: 3 }),
        async (ageing, jobs, values) => {
          store = (await freshStore(db)).store;
          await setAgeing(ageing);
          for (const value of values) await setClass(value);
          for (const [at, [priority, waitedMs]] of jobs.entries()) await submit(`j${at}`, priority, waitedMs);
          const classValues = values.toSorted((a, b) => a - b);
          for (const { job, effectivePriority: found } of await listed()) {
            const gang = { priority: job.spec.priority, waitsSinceMs: job.createTimeMs };
            assert.equal(found, effectivePriority(gang, { ...ageing, classValues }, NOW));
          }
        },
      ),
      { numRuns: 8 },
    );
  });

  test("the planner's state learns of priority classes where priorities grow", async () => {
    await takePlannerLease(store, "p1");
    const follower = new FleetFollower(store.planner);
    const values = async () => {
      await follower.catchUp();
      return follower.planner.queueOf("research")?.classValues;
    };
    await setClass(30);
    assert.equal(await values(), undefined);
    await setAgeing(AGEING);
    assert.deepEqual(await values(), [30]);
    await setClass(20);
    assert.deepEqual(await values(), [20, 30]);
    await store.priorityClasses.remove("class-30", "test");
    assert.deepEqual(await values(), [20]);
  });
});
