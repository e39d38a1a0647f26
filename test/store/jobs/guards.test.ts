import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";
import type { Db } from "../../../src/adapters/store/db/db.ts";
import type { Job } from "../../../src/core/job/job.ts";
import type { Admission } from "../../../src/core/job/status.ts";
import { refuse } from "../../../src/core/plan/explain/refuse.ts";
import type { PlannedAdmission } from "../../../src/core/plan/model/plan-types.ts";
import type { Decision } from "../../../src/core/reconcile/decision.ts";
import { onEachDatabase } from "../../support/databases.ts";
import { keyed } from "../../support/keyed.ts";
import { ledgerAt } from "../../support/ledger-at.ts";
import { snapshotOf } from "../../support/snapshot.ts";
import { raiseQuotaEpoch, recordOne, takePlannerLease } from "../db.ts";
import { FLAVOR, NO_LIMIT, NOW, newJob, plannedFor } from "../jobs.ts";
import { freshPlanner, type TestPlanner } from "../planner-fixture.ts";

onEachDatabase((openDb) => {
  let db: Db;
  let store: TestPlanner["store"];
  let plannerEpoch: number;
  let quotaEpoch: number;
  let submit: TestPlanner["submit"];
  let admit: TestPlanner["admit"];
  let load: TestPlanner["load"];
  let planner: TestPlanner;
  before(async () => {
    db = await openDb();
  });
  after(() => db.close());
  beforeEach(async () => {
    planner = await freshPlanner(db);
    ({ store, plannerEpoch, quotaEpoch, submit, admit, load } = planner);
  });

  async function counter(cluster: string): Promise<number> {
    const found = (await snapshotOf(db)).clusters.find(({ name }) => name === cluster);
    assert.ok(found);
    return found.admissionCounter;
  }

  async function used(): Promise<number> {
    const { sums } = await snapshotOf(db);
    return sums.find(({ scope }) => scope.kind === "queue" && scope.pool === FLAVOR)?.used ?? 0;
  }

  /** Counts everything that an admission writes: a refused one changes nothing. */
  async function traces() {
    const [row] = await db.query(`
    select (select count(*) from allocations) as allocations, (select count(*) from admissions) as admissions,
           (select count(*) from admission_clusters) as clusters, (select count(*) from job_changes) as changes,
           (select coalesce(sum(used), 0)::int from allocation_sums) as used,
           (select sum(admission_counter)::int from clusters) as counters`);
    return row;
  }

  const generationOf = async (job: Job) => (await planner.gangs([job.uid]))[0]?.generation ?? 0;

  function decide(job: Job, admissions: readonly Admission[], phase = job.status.phase): Decision {
    const completionTimeMs = phase === "SUCCEEDED" || phase === "CANCELLED" ? NOW + 2 : null;
    const status = { ...job.status, phase, completionTimeMs };
    return {
      record: { status, admissions, events: [], deleteTimeMs: job.deleteTimeMs },
      forget: false,
      actions: [],
      recheckAtMs: null,
    };
  }

  async function leaseOf(job: Job, worker = "w1") {
    const leases = await store.worker.takeBuckets(worker);
    const loaded = await store.worker.loadJob(job.uid);
    const lease = leases.find(({ bucket }) => bucket === loaded?.bucket);
    assert.ok(lease);
    return lease;
  }

  test("an admission writes the job, its conditions, the ledger and the cluster's counter together", async () => {
    const job = await submit();
    assert.equal(await admit(plannedFor(job)), "recorded");
    const admitted = await load(job.uid);
    assert.equal(admitted.status.phase, "ADMITTED");
    assert.equal(admitted.version, 2);
    const conditions = admitted.status.conditions.map(({ type, status, reason }) => `${type} ${status} ${reason}`);
    assert.deepEqual(conditions, [
      "Created True PyTorchJobCreated",
      "QuotaReserved True QuotaReserved",
      "Admitted True Admitted",
    ]);
    assert.match(admitted.status.conditions[2]?.message ?? "", /east.*gpu\/h100/);
    assert.equal(admitted.admissions[0]?.belowMinSinceMs, NOW + 1);
    assert.equal(await used(), 4);
    assert.equal(await counter("east"), 1);
  });

  const refusals: Record<string, (job: Job) => Promise<PlannedAdmission>> = {
    "the gang has another generation": async (job) => plannedFor(job, { generation: 2 }),
    "the gang has another ask": async (job) => plannedFor(job, { askHash: "another" }),
    "a program of the version before has changed the job": async (job) => {
      await db.query("update jobs set version = version + 1 where uid = $1", [job.uid]);
      return plannedFor(job);
    },
    "the job was cancelled": async (job) => {
      await store.intake.requestCancel(job, "", NOW);
      return plannedFor(job, { generation: 2 });
    },
    "the job is gone": async () => plannedFor(newJob()),
    "another planner took the lease": async (job) => {
      await takePlannerLease(store, "p2");
      return plannedFor(job);
    },
    "the cluster is cordoned": async (job) => {
      await store.admin.setCordoned("east", true);
      return plannedFor(job);
    },
    "another admission to the cluster came first": async (job) => plannedFor(job, { admissionCounter: 1 }),
    "the cluster is unknown": async (job) => plannedFor(job, { cluster: "north" }),
    "the quota epoch was raised": async (job) => {
      await raiseQuotaEpoch(store);
      return plannedFor(job);
    },
  };
  test("an admission is recorded although words of the job's status have changed since the plan", async () => {
    const job = await submit();
    const refusal = refuse({ uid: job.uid, generation: 1 }, { reason: "NoCapacity", message: "there is no room" });
    await store.planner.recordRefusals([keyed(refusal, 1)], plannerEpoch, NOW);
    assert.equal((await load(job.uid)).version, 2);
    assert.equal(await admit(plannedFor(job)), "recorded");
  });

  for (const [name, arrange] of Object.entries(refusals)) {
    test(`an admission is stale and leaves no trace when ${name}`, async () => {
      const job = await submit();
      const planned = await arrange(job);
      const before = await traces();
      assert.equal(await admit(planned), "stale");
      assert.deepEqual(await traces(), before);
    });
  }

  test("the ledger refuses a grant above the queue's limit, whatever the counters granted", async () => {
    const [first, second, third] = [await submit(), await submit(), await submit()];
    assert.equal(await admit(plannedFor(first)), "recorded");
    const before = await traces();
    assert.equal(await admit(plannedFor(second, { admissionCounter: 1 }), { amount: 5 }), "refusedByLedger");
    assert.deepEqual(await traces(), before);
    assert.equal(await admit(plannedFor(second, { admissionCounter: 1 }), { amount: 4 }), "recorded");
    assert.equal(await admit(plannedFor(third, { admissionCounter: 2 }), { amount: 1 }), "refusedByLedger");
    assert.equal(await used(), 8);
  });

  test("the ledger refuses a first grant above the limit and a pool without a quota", async () => {
    const job = await submit();
    assert.equal(await admit(plannedFor(job), { amount: 9 }), "refusedByLedger");
    const other = plannedFor(job).allocations.map((allocation) => ({ ...allocation, pool: "gpu/a100" }));
    assert.equal(await admit(plannedFor(job, { allocations: other })), "refusedByLedger");
    assert.equal(await used(), 0);
  });

  test("a lowered limit grants nothing new and takes nothing away", async () => {
    const [first, second] = [await submit(), await submit()];
    assert.equal(await admit(plannedFor(first)), "recorded");
    const queue = await store.admin.getQueue("research");
    assert.ok(queue);
    const quotas = queue.quotas.map((quota) => ({ ...quota, nominal: 3 }));
    assert.equal((await store.admin.updateQueue({ ...queue, quotas })).kind, "done");
    assert.equal(await used(), 4);
    assert.equal(await admit(plannedFor(second, { admissionCounter: 1 }), { amount: 1 }), "refusedByLedger");
  });

  test("a gang without flavored resources is admitted without tokens", async () => {
    const job = await submit();
    const planned = plannedFor(job, { allocations: [], flavors: {} });
    const record = { planned, allocations: [], fence: null, quotaEpoch, plannerEpoch, nowMs: NOW };
    assert.equal(await recordOne(store, record), "recorded");
    assert.equal(await used(), 0);
  });

  test("a gang enters a cluster only when nothing of its older admissions is left there", async () => {
    const job = await submit();
    await admit(plannedFor(job));
    const lease = await leaseOf(job);
    const admitted = await load(job.uid);
    const undone = admitted.admissions.map((admission) => ({ ...admission, state: "undone" as const }));
    await store.worker.record(admitted, decide(admitted, undone, "WAITING"), lease, NOW);
    const holding = await load(job.uid);
    const elsewhere = { generation: await generationOf(job), admission: 2, admissionCounter: 0, cluster: "west" };
    assert.equal(await admit(plannedFor(job, elsewhere)), "stale", "its pods may still run");
    const released = undone.map((admission) => ({ ...admission, tokensReleasedMs: NOW }));
    await store.worker.record(holding, decide(holding, released, "WAITING"), lease, NOW);
    const second = { generation: await generationOf(job), admission: 2 };
    assert.equal(await admit(plannedFor(job, { ...second, admissionCounter: 1 })), "stale");
    assert.equal(await admit(plannedFor(job, { ...second, cluster: "west" })), "recorded");
    const both = await load(job.uid);
    assert.deepEqual(
      both.admissions.map(({ number, state, cluster }) => [number, state, cluster]),
      [
        [1, "undone", "east"],
        [2, "live", "west"],
      ],
    );
  });

  test("the number of an admission is never used twice, also once it has left the record", async () => {
    const job = await submit();
    await admit(plannedFor(job));
    const lease = await leaseOf(job);
    const admitted = await load(job.uid);
    const undone = admitted.admissions.map((admission) => ({ ...admission, state: "undone" as const }));
    await store.worker.record(admitted, decide(admitted, undone, "WAITING"), lease, NOW);
    const waiting = await load(job.uid);
    const left = undone.map((admission) => ({ ...admission, tokensReleasedMs: NOW, goneMs: NOW }));
    await store.worker.record(waiting, decide(waiting, left), lease, NOW);
    const again = await load(job.uid);
    assert.deepEqual(again.admissions, []);
    assert.equal((await snapshotOf(db)).waiting[0]?.lastAdmission, 1);
    const second = { generation: await generationOf(job), admissionCounter: 1 };
    assert.equal(await admit(plannedFor(job, { ...second, admission: 1 })), "stale");
    assert.equal(await admit(plannedFor(job, { ...second, admission: 2 })), "recorded");
  });

  test("growth adds members and another ledger row under its own fence", async () => {
    const job = await submit();
    await admit(plannedFor(job, { members: { Worker: 2 } }), { amount: 2 });
    const grow = { kind: "grow" as const, generation: 2, admissionCounter: 1, members: { Worker: 4 } };
    assert.equal(await admit(plannedFor(job, grow), { amount: 2 }), "recorded");
    const grown = await load(job.uid);
    assert.deepEqual(grown.admissions[0]?.members, { Worker: 4 });
    assert.equal(grown.version, 3);
    const shown = await store.reads.getJob({ uid: job.uid });
    assert.deepEqual(
      shown?.tokens.map(({ amount }) => amount),
      [2, 2],
    );
    assert.equal(new Set(shown?.tokens.map(({ fence }) => fence)).size, 2);
  });

  test("growth of an admission that is no longer live is stale", async () => {
    const job = await submit();
    await admit(plannedFor(job));
    const admitted = await load(job.uid);
    const ended = admitted.admissions.map((admission) => ({ ...admission, state: "ended" as const }));
    await store.worker.record(admitted, decide(admitted, ended, "SUCCEEDED"), await leaseOf(job), NOW);
    const grow = { kind: "grow" as const, generation: 3, admissionCounter: 1 };
    assert.equal(await admit(plannedFor(job, grow)), "stale");
  });

  test("a step is stale if the job moved on, and changes nothing", async () => {
    const job = await submit();
    const lease = await leaseOf(job);
    await store.intake.requestCancel(job, "enough", NOW);
    assert.equal(await store.worker.record(job, decide(job, [], "CANCELLED"), lease, NOW), "stale");
    assert.equal((await load(job.uid)).status.phase, "WAITING");
  });

  test("a worker that lost its bucket cannot record, forget or move the time to look again", async () => {
    const job = await submit();
    const lease = await leaseOf(job, "w1");
    await leaseOf(job, "w2");
    assert.equal(await store.worker.record(job, decide(job, [], "CANCELLED"), lease, NOW), "leaseLost");
    const forget: Decision = { record: null, forget: true, actions: [], recheckAtMs: null };
    assert.equal(await store.worker.record(job, forget, lease, NOW), "leaseLost");
    await store.worker.recheckAt(job.uid, null, lease, job.version);
    assert.deepEqual(await store.worker.dueJobs([lease.bucket], NOW, 5), [job.uid]);
    assert.deepEqual(await load(job.uid), job);
  });

  test("a lease of another bucket does not allow a record", async () => {
    const job = await submit();
    const lease = await leaseOf(job);
    const other = { ...lease, bucket: (lease.bucket + 1) % 1024 };
    assert.equal(await store.worker.record(job, decide(job, [], "CANCELLED"), other, NOW), "stale");
  });

  test("tokens are released exactly once and confirmed by fence", async () => {
    const job = await submit();
    await admit(plannedFor(job));
    const lease = await leaseOf(job);
    const admitted = await load(job.uid);
    const ended = admitted.admissions.map((admission) => ({
      ...admission,
      state: "ended" as const,
      tokensReleasedMs: NOW,
    }));
    const decision = decide(admitted, ended, "SUCCEEDED");
    assert.equal(await store.worker.record(admitted, decision, lease, NOW), "recorded");
    assert.equal(await store.worker.record(admitted, decision, lease, NOW), "stale");
    assert.equal(await used(), 0);
    const fenced = await ledgerAt(store).unconfirmedReleases(10);
    assert.equal(fenced.length, 1);
    const again = await load(job.uid);
    assert.equal(await store.worker.record(again, decide(again, again.admissions), lease, NOW), "recorded");
    assert.equal(await used(), 0);
    await ledgerAt(store).confirmReleases(fenced);
    assert.deepEqual(await ledgerAt(store).unconfirmedReleases(10), []);
  });

  test("an admission that a decision no longer names releases its tokens", async () => {
    const job = await submit();
    await admit(plannedFor(job));
    const admitted = await load(job.uid);
    assert.equal(
      await store.worker.record(admitted, decide(admitted, [], "CANCELLED"), await leaseOf(job), NOW),
      "recorded",
    );
    assert.equal(await used(), 0);
    const [ended] = (await load(job.uid)).admissions;
    assert.deepEqual([ended?.state, ended?.tokensReleasedMs, ended?.goneMs], ["ended", NOW, NOW]);
  });

  test("a forgotten job leaves no token behind, and its events stay", async () => {
    const job = await submit({ name: "gone" });
    await admit(plannedFor(job));
    const admitted = await load(job.uid);
    const forget: Decision = { record: null, forget: true, actions: [], recheckAtMs: null };
    assert.equal(await store.worker.record(admitted, forget, await leaseOf(job), NOW), "recorded");
    assert.equal(await used(), 0);
    assert.equal(await store.reads.getJob({ uid: job.uid }), null);
    const events = await store.reads.listEvents({ namespace: "team", name: "gone", pageSize: 9, after: null });
    assert.ok(typeof events === "object");
    assert.equal(events.events.at(-1)?.reason, "PyTorchJobDeleted");
  });

  test("raising the epoch returns the live rows and limits, and confirms what was released before", async () => {
    const [first, second] = [await submit(), await submit()];
    await admit(plannedFor(first));
    await admit(plannedFor(second, { admissionCounter: 1 }));
    const lease = await leaseOf(first);
    const admitted = await load(first.uid);
    await store.worker.record(admitted, decide(admitted, [], "CANCELLED"), lease, NOW);
    assert.equal((await ledgerAt(store).unconfirmedReleases(10)).length, 1);
    const raised = await raiseQuotaEpoch(store);
    assert.equal(raised.epoch, quotaEpoch + 1);
    assert.deepEqual(
      raised.rows.map(({ holder, amount, queue }) => [holder, amount, queue]),
      [[{ kind: "admission", jobUid: second.uid, admission: 1 }, 4, "research"]],
    );
    assert.equal(typeof raised.rows[0]?.fence, "bigint");
    assert.deepEqual(raised.limits.queues, [
      { queue: "research", pool: FLAVOR, parent: null, ceiling: 8, guarantee: 0 },
    ]);
    assert.deepEqual(await ledgerAt(store).unconfirmedReleases(10), []);
  });

  test("a fence beyond 2^53 is kept exactly", async () => {
    const job = await submit();
    const planned = plannedFor(job);
    await db.query("update quota_domains set epoch = 1073741824");
    const { epoch } = await raiseQuotaEpoch(store);
    const fence = (BigInt(epoch) << 32n) + 4_000_000_001n;
    const allocations = planned.allocations.map((allocation) => ({ ...allocation, ...NO_LIMIT, token: "t" }));
    await recordOne(store, { planned, allocations, fence, quotaEpoch: epoch, plannerEpoch, nowMs: NOW });
    assert.equal((await raiseQuotaEpoch(store)).rows[0]?.fence, fence);
  });

  test("a refusal changes a job's record only if the dominant reason changed", async () => {
    const job = await submit();
    const refusal = {
      jobUid: job.uid,
      generation: 1,
      reason: "QuotaExhausted",
      message: "needs 8",
      clusters: [],
      quotas: [],
      retryAtMs: null,
    };
    await store.planner.recordRefusals([keyed(refusal, 1)], plannerEpoch, NOW + 1);
    const refused = await load(job.uid);
    assert.equal(refused.version, 2);
    assert.deepEqual(refused.status.waiting, { reason: "QuotaExhausted", message: "needs 8", sinceMs: NOW + 1 });
    await store.planner.recordRefusals([keyed({ ...refusal, message: "needs 7" }, 1)], plannerEpoch, NOW + 2);
    const kept = async () => {
      const { atMs, refusal: found } = (await store.explain.refusalOf(job.uid)) ?? assert.fail();
      return [atMs, found.cause?.key];
    };
    assert.deepEqual(await kept(), [NOW + 1, 1], "a refusal with the same cause is not written again");
    await store.planner.recordRefusals([keyed({ ...refusal, message: "needs 7" }, 2)], plannerEpoch, NOW + 2);
    assert.equal((await load(job.uid)).version, 2);
    assert.deepEqual(await kept(), [NOW + 2, 2]);
    await store.planner.recordRefusals([keyed({ ...refusal, reason: "NoCapacity" }, 3)], plannerEpoch, NOW + 3);
    assert.equal((await load(job.uid)).status.waiting?.reason, "NoCapacity");
  });

  test("a kept refusal has the cause without numbers, and the fields that an older program reads", async () => {
    const job = await submit();
    const scope = { kind: "queue", pool: FLAVOR, queue: "research" } as const;
    const quota = { queue: "research", flavor: FLAVOR, scope, reason: "QuotaExhausted", need: 8, used: 4, limit: 8 };
    const quotas = [{ ...quota, reserved: 0, heldBy: ["team/a"] }];
    const why = { reason: "QuotaExhausted", message: "needs 8; uses 4 of 8" };
    const said = keyed({ ...refuse({ uid: job.uid, generation: 1 }, why), quotas }, 7);
    await store.planner.recordRefusals([said], plannerEpoch, NOW);
    const rows = await db.query<{ refusal: object }>("select refusal from refusals");
    assert.deepEqual(rows[0]?.refusal, {
      ...{ jobUid: job.uid, generation: 1, reason: "QuotaExhausted", message: "", clusters: [], quotas: [] },
      retryAtMs: null,
      cause: { ...said.cause, key: 7 },
    });
  });

  test("a planner that takes over learns the causes of jobs, but of none that shows another reason", async () => {
    const [kept, resumed] = [await submit(), await submit()];
    const why = { reason: "NoCapacity", message: "no node" };
    const said = [kept, resumed].map(({ uid }) => keyed(refuse({ uid, generation: 1 }, why), 7));
    await store.planner.recordRefusals(said, plannerEpoch, NOW);
    const waiting = { reason: "NotEvaluated", message: "it was resumed", sinceMs: NOW };
    await db.query("update jobs set status = (status::jsonb || $2::jsonb)::json where uid = $1", [
      resumed.uid,
      JSON.stringify({ waiting }),
    ]);
    const { causes } = await store.planner.recordedCauses("");
    const keys = new Map(causes.map(({ jobUid, causeKey }) => [jobUid, causeKey]));
    assert.deepEqual([keys.get(kept.uid), keys.get(resumed.uid)], [7, 0]);
  });

  test("the kept refusal of a job behind the head of a strict queue comes with that of the head", async () => {
    const [head, behind] = [await submit(), await submit()];
    const why = { reason: "BehindHead", message: "waits behind team/head" };
    const waits = keyed({ ...refuse({ uid: behind.uid, generation: 1 }, why), head: head.uid }, 1);
    await store.planner.recordRefusals([waits], plannerEpoch, NOW);
    const headOf = async () => (await store.explain.refusalOf(behind.uid))?.head?.cause?.key ?? null;
    assert.equal(await headOf(), null, "the head's refusal is not known yet");
    for (const key of [4, 5]) {
      const lacks = refuse({ uid: head.uid, generation: 1 }, { reason: "QuotaExhausted", message: "needs 8" });
      await store.planner.recordRefusals([keyed(lacks, key)], plannerEpoch, NOW + key);
      assert.equal(await headOf(), key);
    }
  });

  test("a refusal of a job that moved on, or of a planner without its lease, is dropped", async () => {
    const [moved, kept] = [await submit(), await submit()];
    const refusal = (job: Job) => ({
      jobUid: job.uid,
      generation: 1,
      reason: "NoCapacity",
      message: "",
      clusters: [],
      quotas: [],
      retryAtMs: null,
    });
    await admit(plannedFor(moved));
    const left = await store.planner.recordRefusals(
      [keyed(refusal(moved), 1), keyed(refusal(kept), 1)],
      plannerEpoch,
      NOW,
    );
    assert.deepEqual(left, [moved.uid]);
    assert.equal(await store.explain.refusalOf(moved.uid), null);
    assert.notEqual(await store.explain.refusalOf(kept.uid), null);
    const late = await submit();
    await takePlannerLease(store, "p2");
    await store.planner.recordRefusals([keyed(refusal(late), 1)], plannerEpoch, NOW);
    assert.equal(await store.explain.refusalOf(late.uid), null);
    assert.equal((await load(late.uid)).version, 1);
  });

  test("the time to look again moves only if the job has not changed", async () => {
    const job = await submit();
    const lease = await leaseOf(job);
    await store.worker.recheckAt(job.uid, NOW + 100, lease, 1);
    assert.deepEqual(await store.worker.dueJobs([lease.bucket], NOW + 99, 5), []);
    assert.deepEqual(await store.worker.dueJobs([lease.bucket], NOW + 100, 5), [job.uid]);
    await store.intake.requestCancel(job, "", NOW + 50);
    await store.worker.recheckAt(job.uid, null, lease, 1);
    assert.deepEqual(await store.worker.dueJobs([lease.bucket], NOW + 50, 5), [job.uid]);
  });

  test("due jobs of the given buckets are listed, most overdue first", async () => {
    const late = await submit({ createTimeMs: NOW });
    const early = await submit({ createTimeMs: NOW - 5 });
    const buckets = (await store.worker.takeBuckets("w")).map(({ bucket }) => bucket);
    assert.deepEqual(await store.worker.dueJobs(buckets, NOW, 5), [early.uid, late.uid]);
    assert.deepEqual(await store.worker.dueJobs(buckets, NOW, 1), [early.uid]);
    assert.deepEqual(await store.worker.dueJobs([], NOW, 5), []);
  });

  test("of two planners that plan the same job, one records", async () => {
    const job = await submit();
    const plan = plannedFor(job);
    const outcomes = await Promise.all([admit(plan), admit(plan)]);
    assert.deepEqual(outcomes.sort(), ["recorded", "stale"]);
    assert.equal(await used(), 4);
  });
});
