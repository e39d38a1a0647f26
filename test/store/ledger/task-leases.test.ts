import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";
import type { Db } from "../../../src/adapters/store/db/db.ts";
import type { BucketLease } from "../../../src/core/job/bucket.ts";
import { bucketOf } from "../../../src/core/job/bucket.ts";
import type { Job } from "../../../src/core/job/job.ts";
import type { Allocation } from "../../../src/core/quota/counters.ts";
import type { LedgerGrant } from "../../../src/core/quota/ledger.ts";
import type { Decision } from "../../../src/core/reconcile/decision.ts";
import { onEachDatabase, onPostgres } from "../../support/databases.ts";
import { ledgerAt } from "../../support/ledger-at.ts";
import { recordOne, type TestStore, takePlannerLease } from "../db.ts";
import { NOW, newJob, plannedFor, sentOf } from "../jobs.ts";
import { allocation, freshLedger, POOL, releaseOf } from "../ledger-fixture.ts";

/** A ledger and an admitted job. Worker `w1` holds the job's bucket, and a plugin requests tokens for the job. */
async function jobAtWork(db: Db) {
  const { store, epoch, grant } = await freshLedger(db);
  const plannerEpoch = await takePlannerLease(store, "p1");
  const job = newJob();
  await store.intake.createJob({ job, sent: sentOf(job), requestId: "" });
  const planned = { ...plannedFor(job), allocations: [] };
  const fence = BigInt(epoch) << 32n;
  const record = { planned, allocations: [], fence, quotaEpoch: epoch, plannerEpoch, nowMs: NOW };
  assert.equal(await recordOne(store, record), "recorded");
  const bucket = bucketOf(job.uid);
  const [lease] = await store.worker.takeBuckets("w1", [bucket]);
  assert.ok(lease);
  const holder = { kind: "admission", jobUid: job.uid, admission: 1 } as const;
  return {
    store,
    epoch,
    job,
    lease,
    holder,
    asked: (token: string, under: BucketLease = lease) => ({ ...grant([own(token)], holder), lease: under }),
  };
}

function own(token: string): Allocation {
  return allocation({ token, leaseMs: null });
}

/** Makes the record that releases the tokens of the job's admission. */
async function lastRecord(store: TestStore, uid: string): Promise<{ job: Job; decision: Decision }> {
  const loaded = await store.worker.loadJob(uid);
  assert.ok(loaded);
  const { job } = loaded;
  const admissions = job.admissions.map(
    (one) => ({ ...one, state: "ended", tokensReleasedMs: NOW, goneMs: NOW }) as const,
  );
  const status = { ...job.status, phase: "SUCCEEDED", completionTimeMs: NOW } as const;
  const record = { status, admissions, events: [], deleteTimeMs: null };
  return { job, decision: { record, forget: false, actions: [], recheckAtMs: null } };
}

type AtWork = Awaited<ReturnType<typeof jobAtWork>>;

onEachDatabase((openDb) => {
  let db: Db;
  let at: AtWork;
  before(async () => {
    db = await openDb();
  });
  after(() => db.close());
  beforeEach(async () => {
    at = await jobAtWork(db);
  });

  const commit = async (made: LedgerGrant) =>
    (await ledgerAt(at.store, NOW).commit(at.epoch, [made])).map(({ kind }) => kind).join();
  const release = async (token: string, lease = at.lease) =>
    (await ledgerAt(at.store, NOW).release([releaseOf({ token, holder: at.holder, lease })]))
      .map(({ kind }) => kind)
      .join();

  test("the worker that holds the bucket takes and releases tokens for a job's admission", async () => {
    assert.equal(await commit(at.asked("a")), "committed");
    assert.equal(await release("a"), "released");
  });

  test("a worker that has lost the bucket neither takes nor releases tokens; its earlier tokens stay", async () => {
    const before = at.asked("a");
    assert.equal(await commit(before), "committed");
    await at.store.worker.giveBuckets("w1", [at.lease.bucket]);
    assert.equal(await commit(at.asked("b")), "committed", "no other worker has taken the bucket yet");
    const [taken] = await at.store.worker.takeBuckets("w2", [at.lease.bucket]);
    assert.ok(taken);
    assert.equal(await commit(at.asked("c")), "gone");
    assert.equal(await commit(before), "committed", "a recorded grant stays granted, whoever repeats it");
    assert.equal(await release("a"), "notHeld");
    assert.equal(await release("a", taken), "released");
    assert.equal(await commit(at.asked("c", taken)), "committed");
  });

  test("an admission that has released its tokens gets no more, and all sums stay correct", async () => {
    assert.equal(await commit(at.asked("a")), "committed");
    const { job, decision } = await lastRecord(at.store, at.job.uid);
    assert.equal(await at.store.worker.record(job, decision, at.lease, NOW), "recorded");
    assert.equal(await commit(at.asked("b")), "gone");
    assert.deepEqual(await at.store.pools.check(null), { sums: [], orphans: [] });
  });

  test("the remaining tokens of an attempt are released when the next attempt starts", async () => {
    const plugin = (attempt: number, stage: "finalize" | "handle") => {
      const state = { version: 0, value: null };
      return { admission: 1, attempt, stage, state, failedCalls: 0, notBeforeMs: NOW };
    };
    const record = async (attempt: number, stage: "finalize" | "handle") => {
      const loaded = await at.store.worker.loadJob(at.job.uid);
      assert.ok(loaded);
      const { admissions, status, deleteTimeMs } = loaded.job;
      const next = { admissions, status: { ...status, plugin: plugin(attempt, stage) }, events: [], deleteTimeMs };
      const decision = { record: next, forget: false, actions: [], recheckAtMs: null };
      assert.equal(await at.store.worker.record(loaded.job, decision, at.lease, NOW), "recorded");
      return (await ledgerAt(at.store).findLive([{ pool: POOL, token: "a" }])).length;
    };
    assert.equal(await commit(at.asked("a")), "committed");
    assert.equal(await record(1, "finalize"), 1, "the attempt has not ended yet");
    assert.equal(await record(2, "handle"), 0);
    assert.equal(await commit(at.asked("b")), "committed", "the next attempt takes its own tokens");
    assert.deepEqual(await at.store.pools.check(null), { sums: [], orphans: [] });
  });

  test("a grant with a lease is refused if its holder is a caller or an unknown admission", async () => {
    assert.equal(await commit({ ...at.asked("a"), holder: { kind: "caller", name: "flyte" } }), "gone");
    assert.equal(await commit({ ...at.asked("a"), holder: { ...at.holder, admission: 2 } }), "gone");
  });
});

onPostgres((openDb) => {
  let db: Db;
  before(async () => {
    db = await openDb();
  });
  after(() => db.close());

  test("the record that releases an admission's tokens either finds a grant, or the grant is refused", async () => {
    const seen = new Set<string>();
    for (let round = 0; round < 30; round += 1) {
      const { store, epoch, job, lease, asked } = await jobAtWork(db);
      const { job: loaded, decision } = await lastRecord(store, job.uid);
      const granting = () => ledgerAt(store, NOW).commit(epoch, [asked("a")]);
      const ending = () => store.worker.record(loaded, decision, lease, NOW);
      const first = round % 2 === 0 ? granting() : undefined;
      const [recorded, granted] = await Promise.all([ending(), first ?? granting()]);
      assert.equal(recorded, "recorded");
      seen.add(granted[0]?.kind ?? "");
      assert.deepEqual(await store.pools.check(null), { sums: [], orphans: [] });
      assert.deepEqual(await ledgerAt(store).findLive([{ pool: POOL, token: "a" }]), []);
    }
    assert.ok(seen.size > 0 && [...seen].every((kind) => kind === "committed" || kind === "gone"), [...seen].join());
  });
});
