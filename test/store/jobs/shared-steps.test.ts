import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";
import type { Db } from "../../../src/adapters/store/db/db.ts";
import { type DecidedStep, recordSteps } from "../../../src/adapters/store/jobs/record-steps.ts";
import type { Job } from "../../../src/core/job/job.ts";
import type { Decision } from "../../../src/core/reconcile/decision.ts";
import { CountingDb } from "../../support/counting-db.ts";
import { onEachDatabase } from "../../support/databases.ts";
import { OWN_KINDS } from "../../support/kinds.ts";
import { NOW, plannedFor } from "../jobs.ts";
import { freshPlanner, type TestPlanner } from "../planner-fixture.ts";

onEachDatabase((openDb) => {
  let db: Db;
  let store: TestPlanner["store"];
  let submit: TestPlanner["submit"];
  let admit: TestPlanner["admit"];
  let load: TestPlanner["load"];
  /** Taken once: each time raises their epochs. */
  let leases: Map<number, DecidedStep["lease"]>;
  before(async () => {
    db = await openDb();
  });
  after(() => db.close());
  beforeEach(async () => {
    await fresh();
  });

  async function fresh(): Promise<void> {
    ({ store, submit, admit, load } = await freshPlanner(db));
    leases = new Map((await store.worker.takeBuckets("w1")).map((lease) => [lease.bucket, lease]));
  }

  const at = { nowMs: NOW + 5, kinds: OWN_KINDS };

  /** Ends an admitted job, whose pods are gone: it gives its tokens back. */
  function ends(job: Job): Decision {
    const status = { ...job.status, phase: "SUCCEEDED" as const, completionTimeMs: NOW + 2 };
    const admissions = job.admissions.map((admission) => ({
      ...admission,
      state: "ended" as const,
      tokensReleasedMs: NOW + 2,
      goneMs: NOW + 2,
    }));
    const record = { status, admissions, events: [], deleteTimeMs: null };
    return { record, forget: false, actions: [], recheckAtMs: null };
  }

  /** Steps of jobs whose buckets one worker holds. */
  async function stepsOf(jobs: readonly Job[], decide: (job: Job) => Decision): Promise<readonly DecidedStep[]> {
    return Promise.all(
      jobs.map(async ({ uid }) => {
        const loaded = await store.worker.loadJob(uid);
        const lease = leases.get(loaded?.bucket ?? -1);
        assert.ok(loaded !== null && lease !== undefined);
        return { job: loaded.job, decision: decide(loaded.job), lease };
      }),
    );
  }

  async function admitted(count: number): Promise<readonly Job[]> {
    const jobs: Job[] = [];
    for (let made = 0; made < count; made++) {
      const job = await submit();
      assert.equal(await admit(plannedFor(job, { admissionCounter: made })), "recorded");
      jobs.push(job);
    }
    return jobs;
  }

  async function held() {
    const [row] = await db.query<{ live: number; sums: number; clusters: number }>(`
      select (select coalesce(sum(amount), 0)::int from allocations where released_ms is null) as live,
             (select coalesce(sum(used), 0)::int from allocation_sums where scope = 'pool') as sums,
             (select count(*)::int from admission_clusters) as clusters`);
    return row;
  }

  test("each step of a shared transaction has its own guards and its own outcome", async () => {
    const [ended, moved] = await admitted(2);
    const [removed, given, waits] = [await submit(), await submit(), await submit()];
    assert.ok(ended !== undefined && moved !== undefined);
    const forget: Decision = { record: null, forget: true, actions: [], recheckAtMs: null };
    const later: Decision = { record: null, forget: false, actions: [], recheckAtMs: NOW + 77 };
    const [end, stale] = await stepsOf([ended, moved], ends);
    const [gone, lost] = await stepsOf([removed, given], () => forget);
    const [wait] = await stepsOf([waits], () => later);
    assert.ok(end && stale && gone && lost && wait);
    await store.intake.requestCancel(moved, "", NOW);
    const foreign = { ...lost, lease: { ...lost.lease, epoch: lost.lease.epoch + 1 } };
    const outcomes = await recordSteps(db, [stale, wait, end, foreign, gone, end], at);
    assert.deepEqual(outcomes, ["stale", "recorded", "recorded", "leaseLost", "recorded", "stale"]);
    assert.equal((await load(ended.uid)).status.phase, "SUCCEEDED");
    assert.equal((await load(ended.uid)).version, 3, "its second step has changed nothing");
    assert.equal((await load(moved.uid)).status.phase, "ADMITTED");
    assert.equal(await store.worker.loadJob(removed.uid), null);
    assert.equal((await load(given.uid)).version, 1);
    assert.deepEqual(await held(), { live: 4, sums: 4, clusters: 1 });
    const [due] = await db.query<{ at: number }>("select recheck_at_ms as at from jobs where uid = $1", [waits.uid]);
    assert.equal(due?.at, NOW + 77);
  });

  test("the number of statements does not depend on the number of steps", async () => {
    const counts: number[] = [];
    for (const many of [1, 2]) {
      const steps = await stepsOf(await admitted(many), ends);
      const counted = new CountingDb(db);
      assert.deepEqual(new Set(await recordSteps(counted, steps, at)), new Set(["recorded"]));
      counts.push(counted.reads.length);
      await fresh();
    }
    assert.equal(counts[0], counts[1]);
  });

  test("steps that are recorded at one moment share a transaction; a bad one fails alone", async () => {
    const jobs = await admitted(2);
    const third = await submit();
    const steps = await stepsOf([...jobs, third], (job) => (job.uid === third.uid ? broken(job) : ends(job)));
    const outcomes = await Promise.allSettled(
      steps.map(({ job, decision, lease }) => store.worker.record(job, decision, lease, NOW + 5)),
    );
    assert.deepEqual(
      outcomes.map((outcome) => (outcome.status === "fulfilled" ? outcome.value : "failed")),
      ["recorded", "recorded", "failed"],
    );
    assert.deepEqual(await held(), { live: 0, sums: 0, clusters: 0 });
  });

  /** The database refuses a terminal phase without a time of completion. */
  function broken(job: Job): Decision {
    const decision = ends(job);
    assert.ok(decision.record !== null);
    return {
      ...decision,
      record: { ...decision.record, status: { ...decision.record.status, completionTimeMs: null } },
    };
  }
});
