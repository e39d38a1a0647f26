import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";
import type { Db } from "../../../src/adapters/store/db/db.ts";
import type { Job } from "../../../src/core/job/job.ts";
import type { Admission } from "../../../src/core/job/status.ts";
import { onEachDatabase } from "../../support/databases.ts";
import { ledgerAt } from "../../support/ledger-at.ts";
import { freshStore, raiseQuotaEpoch, recordOne, recordStep, type TestStore, takePlannerLease } from "../db.ts";
import { FLAVOR, NO_LIMIT, NOW, newJob, plannedFor, sentOf } from "../jobs.ts";

/** A gang with one GPU for each worker. One worker is enough to run. */
function elastic(): Job {
  const job = newJob();
  const container = { name: "pytorch", resources: { limits: { "nvidia.com/gpu": "1" } } };
  const { runPolicy } = job.spec;
  const spec = {
    ...job.spec,
    replicaSpecs: { Worker: { ...job.spec.replicaSpecs["Worker"], template: { spec: { containers: [container] } } } },
    runPolicy: { ...runPolicy, schedulingPolicy: { ...runPolicy.schedulingPolicy, minAvailable: 1 } },
  };
  return { ...job, spec: spec as Job["spec"] };
}

onEachDatabase((openDb) => {
  let db: Db;
  let store: TestStore;
  let plannerEpoch: number;
  let quotaEpoch: number;
  let fences: bigint;
  let uid: string;
  before(async () => {
    db = await openDb();
  });
  after(() => db.close());
  beforeEach(async () => {
    store = (await freshStore(db)).store;
    plannerEpoch = await takePlannerLease(store, "p1");
    quotaEpoch = (await raiseQuotaEpoch(store)).epoch;
    fences = BigInt(quotaEpoch) << 32n;
    const job = elastic();
    uid = job.uid;
    await store.intake.createJob({ job, sent: sentOf(job), requestId: "" });
  });

  async function load(): Promise<Job> {
    const loaded = await store.worker.loadJob(uid);
    assert.ok(loaded);
    return loaded.job;
  }

  /** Admits the job with this many workers, or grows it to them. */
  async function growTo(workers: number, counter: number): Promise<void> {
    const job = await load();
    const held = job.admissions[0]?.members["Worker"] ?? 0;
    const planned = plannedFor(job, {
      // Every change of this job changes its gang.
      generation: job.version,
      kind: held === 0 ? "admit" : "grow",
      members: { Worker: workers },
      admissionCounter: counter,
    });
    fences += 1n;
    const token = `job/${uid}/admission/1/step/${job.version}/${plannerEpoch}`;
    const allocations = planned.allocations.map((allocation) => ({
      ...allocation,
      ...NO_LIMIT,
      token,
      amount: workers - held,
    }));
    const record = { planned, allocations, fence: fences, quotaEpoch, plannerEpoch, nowMs: NOW };
    assert.equal(await recordOne(store, record), "recorded");
  }

  /** Records that the gang has this many workers left. */
  const shrinkTo = (workers: number) => change({ members: { Worker: workers } });

  /** Records a change of the admission. */
  async function change(changed: Partial<Admission>): Promise<void> {
    const job = await load();
    const admissions = job.admissions.map((one) => ({ ...one, ...changed }));
    await recordStep(store, job, { status: job.status, admissions, events: [], deleteTimeMs: null });
  }

  async function held(): Promise<readonly (readonly [string, number])[]> {
    const rows = await db.query<{ token: string; amount: number }>(
      "select token, amount from allocations where released_ms is null order by id",
    );
    return rows.map(({ token, amount }) => [token.split("/")[5] ?? token, amount]);
  }

  async function agrees(expected: number): Promise<void> {
    assert.deepEqual((await store.pools.check(null)).sums, []);
    const pool = (await ledgerAt(store).readUsed()).find(({ scope }) => scope.kind === "pool");
    assert.equal(pool?.used ?? 0, expected);
  }

  const rests = () => ledgerAt(store).unconfirmedShrinks(9);
  const epochNow = async () => (await ledgerAt(store, NOW).readDomain())?.epoch;

  test("a gang that gives up members returns its last grants, and one token continues with less", async () => {
    await growTo(3, 0);
    await growTo(5, 1);
    await growTo(6, 2);
    await shrinkTo(2);
    assert.deepEqual(await held(), [["1", 2]]);
    await agrees(2);
    const released = await ledgerAt(store).unconfirmedReleases(9);
    assert.deepEqual(
      released.map(({ token }) => token.split("/")[5]),
      ["2", "3"],
    );
    const token = `job/${uid}/admission/1/step/1/${plannerEpoch}`;
    assert.deepEqual(await rests(), [{ pool: FLAVOR, token, fence: (BigInt(quotaEpoch) << 32n) + 1n, amount: 2 }]);
    assert.equal(await epochNow(), quotaEpoch, "the counters must stay open");
  });

  test("a reduced amount is listed for the counters until they confirm the latest one", async () => {
    await growTo(6, 0);
    await shrinkTo(4);
    const first = await rests();
    assert.deepEqual(
      first.map(({ amount }) => amount),
      [4],
    );
    await shrinkTo(3);
    await ledgerAt(store).confirmShrinks(first);
    const second = await rests();
    assert.deepEqual(
      second.map(({ amount }) => amount),
      [3],
    );
    assert.deepEqual(await ledgerAt(store, 0, "elsewhere").unconfirmedShrinks(9), []);
    await ledgerAt(store).confirmShrinks(second);
    assert.deepEqual(await rests(), []);
    await agrees(3);
  });

  test("reloaded counters know the rest of a shrunk token, and a whole release is not reported as a part", async () => {
    await growTo(6, 0);
    await shrinkTo(4);
    const raised = await raiseQuotaEpoch(store);
    assert.deepEqual(
      raised.rows.map(({ amount }) => amount),
      [4],
    );
    assert.deepEqual(await rests(), []);
    await shrinkTo(2);
    assert.equal((await rests()).length, 1);
    const [row] = raised.rows;
    assert.ok(row);
    const request = { ...row, project: null, namespace: null, reason: "released" as const };
    await ledgerAt(store, NOW).release([request]);
    assert.deepEqual(await rests(), []);
    await agrees(0);
  });

  test("members that have ended return their tokens once, and the gang keeps those of the others", async () => {
    await growTo(3, 0);
    await growTo(6, 1);
    await change({ returned: { Worker: [1, 4] } });
    await agrees(4);
    await change({ returned: { Worker: [1, 4] }, belowMinSinceMs: NOW + 5 });
    await agrees(4);
    await change({ returned: { Worker: [0, 1, 4] } });
    await agrees(3);
    assert.deepEqual(await held(), [["1", 3]], "the last grant goes first");
    const released = await ledgerAt(store).unconfirmedReleases(9);
    assert.deepEqual(
      released.map(({ token }) => token.split("/")[5]),
      ["2"],
    );
    assert.equal(await epochNow(), quotaEpoch, "the counters must stay open");
  });

  test("members that a gang gives up return only what they hold", async () => {
    await growTo(6, 0);
    await change({ returned: { Worker: [1, 5] } });
    await change({ members: { Worker: 4 }, returned: { Worker: [1] } });
    await agrees(3);
    await growTo(6, 1);
    await agrees(5);
    await change({ state: "ended", tokensReleasedMs: NOW });
    await agrees(0);
  });

  test("a gang whose members have all ended holds nothing until it is released", async () => {
    await growTo(2, 0);
    await change({ returned: { Worker: [0, 1] } });
    await agrees(0);
    assert.deepEqual(await held(), []);
    await change({ state: "ended", tokensReleasedMs: NOW });
    await agrees(0);
  });

  test("tokens that the job requested while it runs do not belong to members, and stay", async () => {
    await growTo(6, 0);
    fences += 1n;
    const taken = { ...plannedFor(await load()).allocations[0], ...NO_LIMIT, token: "licence", amount: 2 };
    const holder = { kind: "admission" as const, jobUid: uid, admission: 1 };
    const grant = { allocations: [taken as never], holder, fence: fences };
    assert.deepEqual(await ledgerAt(store, NOW).commit(quotaEpoch, [grant]), [{ kind: "committed" }]);
    await shrinkTo(1);
    assert.deepEqual(await held(), [
      ["1", 1],
      ["licence", 2],
    ]);
    await agrees(3);
  });
});
