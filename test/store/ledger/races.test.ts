import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";
import type { Db } from "../../../src/adapters/store/db/db.ts";
import type { Job } from "../../../src/core/job/job.ts";
import type { Decision } from "../../../src/core/reconcile/decision.ts";
import { onPostgres } from "../../support/databases.ts";
import { raiseQuotaEpoch, takePlannerLease } from "../db.ts";
import { awaitBlocked } from "../in-order.ts";
import { FLAVOR, NOW, newJob, plannedFor, sentOf } from "../jobs.ts";
import { entriesAfter } from "../log.ts";
import { freshPlanner, type TestPlanner } from "../planner-fixture.ts";

const CALLERS = 32;
const ALL = { namespace: "", names: [], kinds: [], phases: [], queue: "", cluster: null, labels: {} };

onPostgres((openDb) => {
  let db: Db;
  let store: TestPlanner["store"];
  let plannerEpoch: number;
  let submit: TestPlanner["submit"];
  let admit: TestPlanner["admit"];
  let load: TestPlanner["load"];
  before(async () => {
    db = await openDb();
  });
  after(() => db.close());
  beforeEach(async () => {
    ({ store, plannerEpoch, submit, admit, load } = await freshPlanner(db));
  });

  /** The ledger's own sum of a queue, and the sum of its live allocations, which it must equal. */
  async function sums() {
    const [row] = await db.query<{ sum: number; pool: number; allocations: number }>(`
      select coalesce((select used from allocation_sums where scope = 'queue' and pool = '${FLAVOR}'), 0)::int as sum,
             coalesce((select used from allocation_sums where scope = 'pool' and pool = '${FLAVOR}'), 0)::int as pool,
             (select coalesce(sum(amount), 0)::int from allocations where released_ms is null) as allocations`);
    assert.ok(row);
    assert.deepEqual([row.sum, row.pool], [row.allocations, row.allocations]);
    return row.sum;
  }

  async function leases(worker: string) {
    return new Map((await store.worker.takeBuckets(worker)).map((lease) => [lease.bucket, lease]));
  }

  async function leaseOf(job: Job, worker: string) {
    const loaded = await store.worker.loadJob(job.uid);
    const lease = (await leases(worker)).get(loaded?.bucket ?? -1);
    assert.ok(lease);
    return lease;
  }

  function decide(job: Job, status: Partial<Job["status"]>, admissions = job.admissions): Decision {
    const record = { status: { ...job.status, ...status }, admissions, events: [], deleteTimeMs: null };
    return { record, forget: false, actions: [], recheckAtMs: null };
  }

  function ended(job: Job): Decision {
    const admissions = job.admissions.map((admission) => ({
      ...admission,
      state: "ended" as const,
      tokensReleasedMs: NOW,
    }));
    return decide(job, { phase: "SUCCEEDED", completionTimeMs: NOW }, admissions);
  }

  function counted(outcomes: readonly string[]): Record<string, number> {
    const counts: Record<string, number> = {};
    for (const outcome of outcomes) counts[outcome] = (counts[outcome] ?? 0) + 1;
    return counts;
  }

  test("of many creates with one request id, one makes the job and all answer with it", async () => {
    const outcomes = await Promise.all(
      Array.from({ length: CALLERS }, () => {
        const job = newJob({ name: "train" });
        return store.intake.createJob({ job, sent: sentOf(job), requestId: "r1" });
      }),
    );
    assert.deepEqual(counted(outcomes.map(({ kind }) => kind)), { created: 1, replayed: CALLERS - 1 });
    const uids = new Set(outcomes.map((outcome) => ("job" in outcome ? outcome.job.uid : "")));
    assert.equal(uids.size, 1);
    const [rows] = await db.query(
      "select (select count(*) from jobs) as jobs, (select count(*) from job_changes) as log",
    );
    assert.deepEqual(rows, { jobs: 1, log: 1 });
  });

  test("of many creates with one name, one makes the job, whatever their request ids", async () => {
    const outcomes = await Promise.all(
      Array.from({ length: CALLERS }, (_, at) => {
        const job = newJob({ name: "train" });
        return store.intake.createJob({ job, sent: sentOf(job), requestId: at % 2 === 0 ? `r${at}` : "" });
      }),
    );
    assert.deepEqual(counted(outcomes.map(({ kind }) => kind)), { created: 1, unchanged: CALLERS - 1 });
    const [rows] = await db.query(
      "select count(*) as jobs, (select count(distinct job_uid) from request_ids) as named from jobs",
    );
    assert.deepEqual(rows, { jobs: 1, named: 1 });
  });

  test("of many creates with one request id and different payloads, all but one are refused", async () => {
    const outcomes = await Promise.all(
      Array.from({ length: CALLERS }, (_, at) => {
        const job = newJob({ name: `train-${at}` });
        return store.intake.createJob({ job, sent: sentOf(job), requestId: "r1" });
      }),
    );
    assert.deepEqual(counted(outcomes.map(({ kind }) => kind)), { created: 1, requestIdReused: CALLERS - 1 });
  });

  test("of many planners that record one gang, one succeeds", async () => {
    const job = await submit();
    const outcomes = await Promise.all(Array.from({ length: 8 }, () => admit(plannedFor(job), { amount: 1 })));
    assert.deepEqual(counted(outcomes), { recorded: 1, stale: 7 });
    assert.equal(await sums(), 1);
    assert.equal((await load(job.uid)).admissions.length, 1);
  });

  test("of many gangs that are planned into the same room, one is recorded", async () => {
    const jobs = await Promise.all(Array.from({ length: 8 }, () => submit()));
    const outcomes = await Promise.all(jobs.map((job) => admit(plannedFor(job), { amount: 1 })));
    assert.deepEqual(counted(outcomes), { recorded: 1, stale: 7 });
    const [east] = await db.query("select admission_counter as counter from clusters where name = 'east'");
    assert.deepEqual(east, { counter: 1 });
  });

  test("a planner that lost its lease while others record admits nothing after that", async () => {
    const jobs = await Promise.all(Array.from({ length: 8 }, () => submit()));
    const clusters = jobs.map((_, at) => `c${at}`);
    for (const name of clusters) {
      await store.clusters.simulate({ name, labels: {}, flavors: [] });
    }
    const recorded = jobs.map((job, at) => admit(plannedFor(job, { cluster: clusters[at] ?? "" }), { amount: 1 }));
    const next = await takePlannerLease(store, "p2");
    const seen = await sums();
    const outcomes = await Promise.all(recorded);
    assert.equal(next, plannerEpoch + 1);
    // The former planner records nothing after the take-over.
    assert.equal(outcomes.filter((outcome) => outcome === "recorded").length, seen);
    assert.equal(await sums(), seen);
  });

  test("a planner's take-over waits for an admission in flight, which is recorded", async () => {
    const job = await submit();
    let taken = false;
    const inFlight = await db.tx(async (tx) => {
      await tx.query("select 1 from clusters where name = 'east' for update");
      const admitting = admit(plannedFor(job));
      await awaitBlocked(db, 1);
      const takeOver = takePlannerLease(store, "p2").then(() => {
        taken = true;
      });
      await awaitBlocked(db, 2, takeOver);
      assert.equal(taken, false);
      return { admitting, takeOver };
    });
    assert.equal(await inFlight.admitting, "recorded");
    await inFlight.takeOver;
  });

  test("however many grants are recorded at once, their sum stays within the limit", async () => {
    for (let round = 0; round < 3; round += 1) {
      ({ store, submit, admit } = await freshPlanner(db));
      const jobs = await Promise.all(Array.from({ length: 24 }, () => submit()));
      for (const [at] of jobs.entries()) {
        await store.clusters.simulate({ name: `c${at}`, labels: {}, flavors: [] });
      }
      const outcomes = await Promise.all(
        jobs.map((job, at) => admit(plannedFor(job, { cluster: `c${at}` }), { amount: 1 + (at % 3) })),
      );
      const granted = jobs.map((_, at) => (outcomes[at] === "recorded" ? 1 + (at % 3) : 0)).reduce((a, b) => a + b);
      assert.ok(outcomes.includes("refusedByLedger"));
      assert.equal(await sums(), granted);
      assert.ok(granted <= 8 && granted >= 6, `${granted} of 8 granted`);
    }
  });

  test("releases beside grants neither deadlock nor lose an amount", async () => {
    const holders = await Promise.all(Array.from({ length: 6 }, () => submit()));
    for (let at = 0; at < 24; at += 1) {
      await store.clusters.simulate({ name: `c${at}`, labels: {}, flavors: [] });
    }
    for (const [at, job] of holders.entries()) {
      assert.equal(await admit(plannedFor(job, { cluster: `c${at}` }), { amount: 1 }), "recorded");
    }
    const waiting = await Promise.all(Array.from({ length: 12 }, () => submit()));
    const held = await leases("w1");
    const release = async (job: Job) => {
      const loaded = await store.worker.loadJob(job.uid);
      const lease = held.get(loaded?.bucket ?? -1);
      assert.ok(loaded && lease);
      return store.worker.record(loaded.job, ended(loaded.job), lease, NOW);
    };
    const [released, granted] = await Promise.all([
      Promise.all(holders.map(release)),
      Promise.all(waiting.map((job, at) => admit(plannedFor(job, { cluster: `c${at + 6}` }), { amount: 1 }))),
    ]);
    assert.deepEqual(counted(released), { recorded: 6 });
    const recorded = granted.filter((outcome) => outcome === "recorded").length;
    assert.ok(recorded >= 2 && recorded <= 8, `${recorded} granted`);
    assert.equal(await sums(), recorded);
  });

  test("raising the quota epoch beside grants reads every grant of the old epoch and stops the others", async () => {
    const jobs = await Promise.all(Array.from({ length: 8 }, () => submit()));
    for (const [at] of jobs.entries()) {
      await store.clusters.simulate({ name: `c${at}`, labels: {}, flavors: [] });
    }
    const grants = jobs.map((job, at) => admit(plannedFor(job, { cluster: `c${at}` }), { amount: 1 }));
    const raised = await raiseQuotaEpoch(store);
    const outcomes = await Promise.all(grants);
    const recorded = jobs.filter((_, at) => outcomes[at] === "recorded").map(({ uid }) => uid);
    assert.deepEqual(
      raised.rows.map(({ holder }) => holder.kind === "admission" && holder.jobUid).sort(),
      recorded.sort(),
    );
    assert.ok(outcomes.every((outcome) => outcome === "recorded" || outcome === "stale"));
  });

  test("a bucket's take-over waits for a record in flight, and stops every later one", async () => {
    for (let round = 0; round < 8; round += 1) {
      const job = await submit();
      const lease = await leaseOf(job, "w1");
      const recording = store.worker.record(job, decide(job, { phase: "RUNNING" }), lease, NOW);
      await leases("w2");
      const seen = (await load(job.uid)).version;
      const outcome = await recording;
      // The record either comes before the take-over or is refused.
      assert.equal(outcome, seen === 2 ? "recorded" : "leaseLost");
      assert.equal((await load(job.uid)).version, seen);
    }
  });

  test("a bucket's take-over waits for a step that waits for its job's row, and the step is recorded", async () => {
    const job = await submit();
    const lease = await leaseOf(job, "w1");
    let taken = false;
    const inFlight = await db.tx(async (tx) => {
      await tx.query("select 1 from jobs where uid = $1 for update", [job.uid]);
      const recording = store.worker.record(job, decide(job, { phase: "RUNNING" }), lease, NOW);
      await awaitBlocked(db, 1);
      const takeOver = leases("w2").then((took) => {
        taken = true;
        return took;
      });
      await awaitBlocked(db, 2, takeOver);
      assert.equal(taken, false);
      return { recording, takeOver };
    });
    assert.equal(await inFlight.recording, "recorded");
    assert.equal((await inFlight.takeOver).get(lease.bucket)?.epoch, lease.epoch + 1);
    assert.equal(await store.worker.record(await load(job.uid), decide(job, {}), lease, NOW), "leaseLost");
  });

  test("a take-over waits while a transaction holds the lease, and the holder's renewal does not", async () => {
    const job = await submit();
    const lease = await leaseOf(job, "w1");
    let takeOver: Promise<unknown> = Promise.resolve();
    let taken = false;
    await db.tx(async (tx) => {
      await tx.query("select 1 from bucket_leases where bucket = $1 and epoch = $2 for key share", [
        lease.bucket,
        lease.epoch,
      ]);
      takeOver = leases("w2").then(() => {
        taken = true;
      });
      await db.query("update workers set counter = counter + 1 where name = 'w1'");
      await awaitBlocked(db, 1, takeOver);
      assert.equal(taken, false);
    });
    await takeOver;
    assert.equal(taken, true);
  });

  test("a cancel and a record of the same job both happen, one after the other", async () => {
    for (let round = 0; round < 8; round += 1) {
      const job = await submit();
      const lease = await leaseOf(job, "w1");
      const [recorded, cancelled] = await Promise.all([
        store.worker.record(job, decide(job, { phase: "RUNNING" }), lease, NOW),
        store.intake.requestCancel(job, "enough", NOW),
      ]);
      assert.equal(cancelled.kind, "cancelled");
      const after = await load(job.uid);
      assert.equal(after.cancel?.reason, "enough");
      assert.equal(after.version, recorded === "recorded" ? 3 : 2);
      assert.equal(after.status.phase, recorded === "recorded" ? "RUNNING" : "WAITING");
    }
  });

  test("with eight writers and two sequencers, positions are dense and a follower gets each once", async () => {
    const writers = 8;
    const each = 12;
    let writing = true;
    const write = async () => {
      for (let at = 0; at < each; at += 1) {
        const job = await submit();
        await store.intake.requestCancel(job, "", NOW);
      }
    };
    const sequence = async () => {
      while (writing || (await store.watch.sequence()).given > 0) await store.watch.sequence();
    };
    const total = writers * each * 2;
    const followed: { position: number; uid: string; version: number }[] = [];
    const follow = async () => {
      while (followed.length < total) {
        const { entries, gap } = await entriesAfter(store, followed.at(-1)?.position ?? 0, 7);
        assert.equal(gap, false);
        for (const { position, job } of entries) followed.push({ position, uid: job.uid, version: job.version });
        const { head, ahead, jobs } = await store.watch.snapshot({ filter: ALL, after: null, limit: 1_000 });
        const isAhead = ({ uid }: Job) => ahead.some((change) => change.uid === uid);
        // Every job of a snapshot is either behind its head or said to be ahead of it.
        for (const job of jobs) {
          const known = followed.some(({ uid, version }) => uid === job.uid && version >= job.version);
          if (!known && !isAhead(job)) assert.ok(head.position > (followed.at(-1)?.position ?? 0));
        }
      }
    };
    const wrote = Promise.all(Array.from({ length: writers }, write)).finally(() => {
      writing = false;
    });
    await Promise.all([wrote, sequence(), sequence(), follow()]);
    assert.deepEqual(
      followed.map(({ position }) => position),
      Array.from({ length: total }, (_, at) => at + 1),
    );
    const versions = new Map<string, number>();
    for (const { uid, version } of followed) {
      assert.equal(version, (versions.get(uid) ?? 0) + 1);
      versions.set(uid, version);
    }
  });

  test("a namespace that many creates need at once is made once", async () => {
    const outcomes = await Promise.all(
      Array.from({ length: CALLERS }, (_, at) => {
        const job = newJob({ namespace: `team-${at % 2}` });
        return store.intake.createJob({ job, sent: sentOf(job), requestId: `r${at}` });
      }),
    );
    assert.deepEqual(counted(outcomes.map(({ kind }) => kind)), { created: CALLERS });
    assert.equal((await store.admin.listNamespaces()).length, 2);
  });

  test("jobs are created in an open namespace that others delete at that moment", async () => {
    for (let round = 0; round < 20; round++) {
      const namespace = `passing-${round}`;
      await store.admin.createNamespace({ name: namespace, project: "default", defaultQueue: "research" });
      const jobs = Array.from({ length: 8 }, () => newJob({ namespace }));
      const created = jobs.map((job) => store.intake.createJob({ job, sent: sentOf(job), requestId: "" }));
      const deleted = jobs.map(() => store.admin.deleteNamespace(namespace));
      const outcomes = await Promise.all(created);
      await Promise.all(deleted);
      assert.deepEqual(new Set(outcomes.map(({ kind }) => kind)), new Set(["created"]));
    }
  });
});
