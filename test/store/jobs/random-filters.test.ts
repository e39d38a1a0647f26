/** Lists and counts of random jobs, compared with jobs that are matched and counted one by one. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import fc from "fast-check";
import type { Db } from "../../../src/adapters/store/db/db.ts";
import {
  ENDED_AGE_MS_MAX,
  ENDED_MAX,
  GROUPS_MAX,
  type JobProperty,
  POOLS_MAX,
} from "../../../src/core/job/request/count.ts";
import { type JobFilter, matchesFilter } from "../../../src/core/job/request/filter.ts";
import type { ShownJob } from "../../../src/core/job/request/list.ts";
import { copyJobs } from "../../support/copy-jobs.ts";
import { countByHand } from "../../support/count-by-hand.ts";
import { onEachDatabase } from "../../support/databases.ts";
import { freshStore, type TestStore } from "../db.ts";
import { NO_STATUS, NOW, newJob, sentOf } from "../jobs.ts";
import { ALL_JOBS, anyFilter, anyJobs, holdToken, recordJobs } from "../random-jobs.ts";

const PROPERTIES: readonly JobProperty[] = [
  ...(["phase", "queue", "namespace", "owner"] as const),
  ...(["kind", "cluster", "flavor", "reason"] as const),
];
const anyGroups = fc
  .shuffledSubarray([...PROPERTIES], { maxLength: 2 })
  .map((properties): readonly JobProperty[] => properties);

onEachDatabase((openDb) => {
  let db: Db;
  before(async () => {
    db = await openDb();
  });
  after(() => db.close());

  test("lists have the jobs that core's filter passes, and counts are those of jobs counted one by one", async () => {
    let passed = 0;
    await fc.assert(
      fc.asyncProperty(
        anyJobs,
        fc.array(fc.tuple(anyFilter, anyGroups, fc.subarray([0, 1, 2])), { minLength: 12, maxLength: 12 }),
        async (random, queries) => {
          const { store } = await freshStore(db);
          const jobs = await recordJobs(db, store, random);
          for (const [drawn, groupBy, places] of queries) {
            const uids = places.length === 0 ? null : places.flatMap((at) => jobs[at]?.job.uid ?? []);
            for (const filter of [drawn, { ...drawn, uids }]) {
              const page = await store.reads.listJobs({ filter, order: "name", pageSize: 1_000, after: null });
              assert.ok(page !== "badCursor");
              const expected = jobs.filter(({ job }) => matchesFilter(filter, job)).map(({ job }) => job.uid);
              passed += expected.length;
              assert.deepEqual(
                page.jobs.map(({ job }) => job.uid),
                expected,
              );
              assert.equal(page.total, expected.length);
              const counted = await store.reads.countJobs({ filter, groupBy });
              assert.deepEqual(counted, countByHand(jobs, { filter, groupBy }, NOW));
            }
          }
        },
      ),
      { numRuns: 15 },
    );
    assert.ok(passed > 0, "no filter has passed a job");
  });

  test("groups beyond those that are shown, and pools beyond those that are named, are summed up", async () => {
    const { store } = await freshStore(db);
    const random = fc
      .sample(anyJobs, { seed: 7, numRuns: 60 })
      .flat()
      .slice(0, GROUPS_MAX + 30);
    const owned = random.map((one, at) => ({ ...one, createdBy: `owner-${Math.floor(at / 1.05)}` }));
    const jobs = await recordJobs(
      db,
      store,
      owned.map((one) => ({ ...one, phase: "RUNNING" as const })),
    );
    const [first] = jobs;
    assert.ok(first);
    for (let at = 0; at < POOLS_MAX + 5; at++) await holdToken(db, first.job, `lic:p${at}`);
    const shown = await listed(store);
    for (const groupBy of [["owner"], ["phase"], ["owner", "kind"], ["owner", "flavor"]] as const) {
      const counted = await store.reads.countJobs({ filter: ALL_JOBS, groupBy });
      assert.deepEqual(counted, countByHand(shown, { filter: ALL_JOBS, groupBy }, NOW));
      assert.equal(counted.restGroups > 0, groupBy[0] === "owner");
      if (groupBy[0] === "phase") assert.equal(Object.keys(counted.groups[0]?.tokens ?? {}).length, POOLS_MAX + 1);
    }
  });

  test("of the jobs that have ended, those that ended last count", async () => {
    const { store } = await freshStore(db);
    const status = { ...NO_STATUS, phase: "FAILED" as const, completionTimeMs: NOW - 1 };
    const old = newJob({ name: "old", status });
    const young = newJob({ name: "young", createdBy: "ann", status: { ...status, completionTimeMs: NOW } });
    const waits = newJob({ name: "waits" });
    for (const job of [old, young, waits]) await store.intake.createJob({ job, sent: sentOf(job), requestId: "" });
    await copyJobs(db, { uid: young.uid, count: ENDED_MAX - 2, prefix: "copy" });
    const count = (filter: Partial<JobFilter>) =>
      store.reads.countJobs({ filter: { ...ALL_JOBS, ...filter }, groupBy: ["owner"] });
    const both = await count({ endedSinceMs: 0 });
    assert.deepEqual(
      both.groups.map(({ values, jobs }) => [...values, jobs]),
      [
        ["ann", ENDED_MAX - 1],
        ["anonymous", 1],
      ],
    );
    assert.equal(both.endedCapped, false);
    assert.equal(both.endedSinceMs, NOW - ENDED_AGE_MS_MAX);
    await copyJobs(db, { uid: young.uid, count: 1, prefix: "one-more" });
    const capped = await count({ phases: ["FAILED", "WAITING"] });
    assert.deepEqual(
      capped.groups.map(({ values, jobs }) => [...values, jobs]),
      [
        ["ann", ENDED_MAX],
        ["anonymous", 1],
      ],
    );
    assert.equal(capped.endedCapped, true);
    const live = await count({});
    assert.deepEqual(
      live.groups.map(({ values, jobs }) => [...values, jobs]),
      [["anonymous", 1]],
    );
    assert.equal(live.endedSinceMs, null);
  });
});

async function listed(store: TestStore): Promise<readonly ShownJob[]> {
  const page = await store.reads.listJobs({ filter: ALL_JOBS, order: "name", pageSize: 1_000, after: null });
  assert.ok(page !== "badCursor");
  return page.jobs;
}
