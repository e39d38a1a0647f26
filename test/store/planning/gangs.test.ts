import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";
import fc from "fast-check";
import type { Db } from "../../../src/adapters/store/db/db.ts";
import type { Job } from "../../../src/core/job/job.ts";
import { bareSpec } from "../../../src/core/job/spec.ts";
import { changeJob, type WantedChange } from "../../../src/core/kinds/change-job.ts";
import { refuse } from "../../../src/core/plan/explain/refuse.ts";
import { askOf } from "../../../src/core/plan/model/ask.ts";
import { gangOf, isPlanned, type PlanGang, takesFromOthers } from "../../../src/core/plan/model/plan-gang.ts";
import type { Decision } from "../../../src/core/reconcile/decision.ts";
import { FleetFollower } from "../../../src/planner/fleet-follower.ts";
import { contentHash } from "../../../src/runtime/content-hash.ts";
import { canonicalJson } from "../../../src/runtime/json.ts";
import { onEachDatabase } from "../../support/databases.ts";
import { keyed } from "../../support/keyed.ts";
import { OWN_KINDS } from "../../support/kinds.ts";
import { NOW, newJob, plannedFor } from "../jobs.ts";
import { freshPlanner, type TestPlanner } from "../planner-fixture.ts";
import { pruneAll } from "../prune.ts";

/** A job of two replica types, of which one is elastic, with a template of its own if interrupted too often. */
function gangJob(cpu: number, more: Parameters<typeof newJob>[0] = {}): Job {
  const job = newJob(more);
  const template = (spot: string) => ({
    spec: { containers: [{ name: "tensorflow", resources: { requests: { cpu } } }], nodeSelector: { spot } },
  });
  const worker = { restartPolicy: "OnFailure" as const, template: template("yes") };
  return {
    ...job,
    spec: {
      ...job.spec,
      kind: "TFJob",
      kindSpec: { enableDynamicWorker: true },
      replicaSpecs: {
        PS: { ...worker, replicas: 1 },
        Worker: { ...worker, replicas: 4, uninterruptedTemplate: template("no") },
      },
      runPolicy: { ...job.spec.runPolicy, interruptible: true },
    },
  };
}

onEachDatabase((openDb) => {
  let db: Db;
  let planner: TestPlanner;
  before(async () => {
    db = await openDb();
  });
  after(() => db.close());
  beforeEach(async () => {
    planner = await freshPlanner(db);
  });

  const gangNow = async (job: Job): Promise<PlanGang> => {
    const [gang] = await planner.gangs([job.uid]);
    assert.ok(gang);
    return gang;
  };
  const hashes = async () =>
    (await db.query<{ hash: string }>("select hash from asks order by hash")).map((r) => r.hash);
  const hashOf = (job: Job) => contentHash(askOf(job, OWN_KINDS));

  async function step(uid: string, changes: (job: Job) => Partial<NonNullable<Decision["record"]>>): Promise<void> {
    const leases = await planner.store.worker.takeBuckets("w1");
    const loaded = await planner.store.worker.loadJob(uid);
    const lease = leases.find(({ bucket }) => bucket === loaded?.bucket);
    assert.ok(loaded && lease);
    const { job } = loaded;
    const record = { status: job.status, admissions: job.admissions, events: [], deleteTimeMs: job.deleteTimeMs };
    const decision = { record: { ...record, ...changes(job) }, forget: false, actions: [], recheckAtMs: null };
    assert.equal(await planner.store.worker.record(job, decision, lease, NOW), "recorded");
  }

  const change = (job: Job, wanted: Partial<WantedChange>) =>
    planner.store.intake.changeJob(
      job,
      (found) => changeJob(found, OWN_KINDS.kindOf(found.spec.kind)!, { version: null, ...wanted }, NOW),
      NOW,
    );

  /** Everything that changes a job's record. Each does nothing if the job is in no state for it. */
  const changes: Record<string, (job: Job) => Promise<unknown>> = {
    prioritize: (job) => change(job, { priority: job.spec.priority + 1 }),
    relabel: (job) => change(job, { labels: { at: String(job.version) } }),
    suspend: (job) => change(job, { suspend: true }),
    resume: (job) => change(job, { suspend: false }),
    grow: (job) => change(job, { replicas: { Worker: (job.spec.replicaSpecs["Worker"]?.replicas ?? 0) + 1 } }),
    shrink: (job) => change(job, { replicas: { Worker: 2 } }),
    cancel: (job) => planner.store.intake.requestCancel(job, "", NOW),
    remove: (job) => planner.store.intake.requestDelete(job, NOW),
    admit: async (job) => {
      const { generation, lastAdmission } = await gangNow(job);
      const number = lastAdmission + 1;
      const [east] = await db.query<{ n: number }>("select admission_counter as n from clusters where name = 'east'");
      const members = { Worker: 1 };
      await planner.admit(
        plannedFor(job, { generation, admission: number, admissionCounter: east!.n, members, allocations: [] }),
      );
    },
    refuse: async (job) => {
      const reason = ["NoCapacity", "WaitingForCache"][job.version % 2]!;
      const refusal = refuse(await gangNow(job), { reason, message: "there is no room" });
      return planner.store.planner.recordRefusals([keyed(refusal, job.version)], planner.plannerEpoch, NOW);
    },
    fail: (job) =>
      step(job.uid, ({ status }) => ({
        status: { ...status, attempts: { ...status.attempts, system: status.attempts.system + 1 } },
      })),
    tell: (job) => step(job.uid, ({ status }) => ({ status: { ...status, startTimeMs: NOW } })),
    undo: (job) =>
      step(job.uid, ({ status, admissions }) => ({
        status: { ...status, phase: "WAITING", backoff: { undone: 1, notBeforeMs: NOW + 5, lastCluster: "east" } },
        admissions: admissions.map((one) => ({ ...one, state: "undone" as const })),
      })),
    drain: (job) =>
      step(job.uid, ({ admissions }) => ({
        admissions: admissions.map((one) =>
          one.state === "undone" ? { ...one, tokensReleasedMs: one.tokensReleasedMs ?? NOW, goneMs: NOW } : one,
        ),
      })),
  };

  test("after any changes a job's columns have its gang, and its generation counts changes of the gang", async () => {
    const some = fc.array(fc.constantFrom(...Object.keys(changes)), { minLength: 3, maxLength: 12 });
    await fc.assert(
      fc.asyncProperty(some, fc.option(fc.constant("key")), async (history, cacheKey) => {
        const plain = gangJob(1);
        const runPolicy = { ...plain.spec.runPolicy, ...(cacheKey === null ? {} : { cacheKey }) };
        const job = { ...plain, spec: { ...plain.spec, runPolicy } };
        await planner.store.intake.createJob({ job, sent: { ...SENT, name: job.name }, requestId: "" });
        let before = await gangNow(job);
        assert.equal(before.generation, 1);
        for (const name of history) {
          await changes[name]?.(await planner.load(job.uid));
          const now = await gangNow(job);
          const { generation, lastAdmission, version } = now;
          const record = await planner.load(job.uid);
          assert.deepEqual(now, gangOf(record, OWN_KINDS, { generation, lastAdmission }), name);
          assert.equal(version, record.version);
          const changed = factsOf(before) !== factsOf(now);
          assert.equal(generation, before.generation + (changed ? 1 : 0), name);
          before = now;
        }
        assert.equal(await planner.refresh(), 0);
      }),
      { numRuns: 20 },
    );
  });

  test("after any changes a follower of takers knows a gang if it runs, holds tokens or is nominated", async () => {
    const some = fc.array(fc.constantFrom(...Object.keys(changes)), { minLength: 3, maxLength: 12 });
    await fc.assert(
      fc.asyncProperty(some, async (history) => {
        const job = await planner.submit(gangJob(1));
        const follower = new FleetFollower(planner.store.explain.followTakers());
        for (const name of ["admit", ...history]) {
          await changes[name]?.(await planner.load(job.uid));
          const now = await gangNow(job);
          const loaded = new FleetFollower(planner.store.explain.followTakers());
          const expected = isPlanned(now) && takesFromOthers(now) ? now : null;
          for (const one of [follower, loaded]) {
            await one.catchUp();
            assert.deepEqual(one.planner.gangOf(job.uid), expected, name);
          }
          assert.equal(follower.planner.hash(), loaded.planner.hash(), name);
        }
      }),
      { numRuns: 20 },
    );
  });

  test("jobs with equal asks share one, and an ask is pruned once no job has it", async () => {
    const one = await planner.submit(gangJob(1));
    const other = await planner.submit(gangJob(1, { name: "other" }));
    const third = await planner.submit(gangJob(2));
    assert.deepEqual(await hashes(), [hashOf(one), hashOf(third)].sort());
    const gangs = await planner.gangs([one.uid, other.uid]);
    assert.equal(gangs[0]?.ask, gangs[1]?.ask);
    assert.deepEqual(gangs[0]?.ask, askOf(one, OWN_KINDS));
    await change(third, { replicas: { Worker: 3 } });
    const smaller = await planner.load(third.uid);
    assert.deepEqual(await hashes(), [hashOf(one), hashOf(third), hashOf(smaller)].sort());
    await pruneAll(planner.store, 0);
    assert.deepEqual(await hashes(), [hashOf(one), hashOf(smaller)].sort());
  });

  test("jobs of one batch write their asks once", async () => {
    const jobs = [gangJob(1), gangJob(2), gangJob(1)];
    const requests = jobs.map((job) => ({ job, sent: { ...SENT, name: job.name }, requestId: "" }));
    await planner.store.intake.createJobs(requests);
    assert.deepEqual(await hashes(), [hashOf(jobs[0]!), hashOf(jobs[1]!)].sort());
    const gangs = await planner.gangs(jobs.map(({ uid }) => uid));
    assert.deepEqual(
      gangs.map(({ askHash }) => askHash),
      jobs.map(hashOf),
    );
  });

  test("an ask that was pruned while its job was made is written again", async () => {
    const job = await planner.submit(gangJob(1));
    // Another job had the ask and has it no more, so there is a note about it.
    await change(await planner.submit(gangJob(1)), { replicas: { Worker: 3 } });
    await db.query("delete from asks");
    assert.deepEqual((await gangNow(job)).ask, askOf(job, OWN_KINDS));
    await pruneAll(planner.store, 0);
    assert.equal(await planner.refresh(), 1);
    assert.deepEqual(await hashes(), [hashOf(job)]);
    assert.deepEqual(await gangNow(job), gangOf(job, OWN_KINDS, { generation: 2, lastAdmission: 0 }));
  });

  test("a change by a program of the version before is read from the record, and begins a new generation", async () => {
    const job = await planner.submit(gangJob(1));
    const spec = { ...gangJob(3).spec, priority: 7 };
    const older = { ...job, spec, version: 2 };
    await db.query(
      `update jobs set version = 2, spec = $2::json, outline = $3::json, priority = 7, status = status where uid = $1`,
      [job.uid, JSON.stringify(spec), JSON.stringify(bareSpec(spec))],
    );
    assert.deepEqual(await gangNow(job), gangOf(older, OWN_KINDS, { generation: 1, lastAdmission: 0 }));
    // A change by this program does not hide that the columns are old.
    await change(older, { labels: { team: "a" } });
    const newer = await planner.load(job.uid);
    assert.equal((await gangNow(job)).askHash, hashOf(older));
    assert.equal(await planner.refresh(), 1);
    assert.deepEqual(await gangNow(job), gangOf(newer, OWN_KINDS, { generation: 2, lastAdmission: 0 }));
    assert.equal(await planner.refresh(), 0);
  });

  test("jobs of the version before get their gangs in batches, and jobs that have ended get none", async () => {
    const jobs = Array.from({ length: 1_203 }, () => newJob());
    const requests = jobs.map((job) => ({ job, sent: { ...SENT, name: job.name }, requestId: "" }));
    await planner.store.intake.createJobs(requests);
    await db.query("update jobs set ask_hash = null, gang = null, generation = 0, gang_version = null");
    await db.query("update jobs set phase = 'FAILED', completion_ms = 5 where uid = $1", [jobs[0]!.uid]);
    await db.query("delete from asks");
    assert.equal(await planner.refresh(), 1_202);
    const gangs = await planner.gangs(jobs.slice(1).map(({ uid }) => uid));
    assert.deepEqual(
      gangs,
      jobs.slice(1).map((job) => gangOf(job, OWN_KINDS, { generation: 1, lastAdmission: 0 })),
    );
    assert.equal(new Set(gangs.map(({ ask }) => ask)).size, 1);
    assert.equal((await hashes()).length, 1);
  });
});

const SENT = {
  namespace: "team",
  generateName: "",
  labels: {},
  annotations: {},
  spec: { kind: "TFJob", replicaSpecs: {} },
};

function factsOf({ version: _version, generation: _generation, ...facts }: PlanGang): string {
  return canonicalJson(facts);
}
