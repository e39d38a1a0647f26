/** Grants of all callers wait for a preemption that is recorded, whatever it does: for few statements. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Db } from "../../../src/adapters/store/db/db.ts";
import { giveBack } from "../../../src/adapters/store/ledger/give-back.ts";
import type { Job } from "../../../src/core/job/job.ts";
import { withoutNomination } from "../../../src/core/job/nomination.ts";
import type { PlannedVictim, PreemptionRecord } from "../../../src/core/plan/model/preemption.ts";
import { openMemoryDb } from "../../support/databases.ts";
import { statementsGrantsWaitFor } from "../../support/locks/check-locks.ts";
import { STATEMENTS_AFTER_MAX } from "../../support/locks/order.ts";
import { FLAVOR, NOW, plannedFor } from "../jobs.ts";
import { freshPlanner, type TestPlanner } from "../planner-fixture.ts";

let db: Db;
let planner: TestPlanner;
/** The statements of each transaction since `grantsWaitFor` began. */
let transactions: string[][] = [];

before(async () => {
  const opened = await openMemoryDb();
  db = {
    ...opened,
    tx: (fn) =>
      opened.tx((tx) => {
        const statements: string[] = [];
        transactions.push(statements);
        const query: typeof tx.query = (text, params) => {
          statements.push(text);
          return tx.query(text, params);
        };
        return fn({ query });
      }),
  };
  planner = await freshPlanner(db);
  const quotas = [{ flavor: FLAVOR, resource: "nvidia.com/gpu", nominal: 100_000 }];
  await planner.store.admin.updateQueue({ name: "research", strategy: "BEST_EFFORT_FIFO", quotas, version: 0 });
});
after(() => db.close());

/** The largest number of statements for which grants wait in one transaction of a call. */
async function grantsWaitFor(call: () => Promise<unknown>): Promise<number> {
  transactions = [];
  await call();
  return Math.max(0, ...transactions.map(statementsGrantsWaitFor));
}

/** A job whose admission holds four tokens. */
async function running(): Promise<Job> {
  const job = await planner.submit();
  const [row] = await db.query<{ counter: number }>(
    "select admission_counter as counter from clusters where name = 'east'",
  );
  assert.equal(await planner.admit(plannedFor(job, { admissionCounter: row?.counter ?? 0 })), "recorded");
  return job;
}

function victimOf({ uid }: Job, of: Partial<PlannedVictim> = {}): PlannedVictim {
  return { jobUid: uid, queue: "research", admission: 1, members: { Worker: 4 }, reason: "InClusterQueue", ...of };
}

function recordOf(nominee: Job, of: Partial<PreemptionRecord>): PreemptionRecord {
  return { planned: plannedFor(nominee), victims: [], queue: "research", ...of };
}

const preempt = (records: readonly PreemptionRecord[]) =>
  planner.store.planner.recordPreemptions(records, planner.plannerEpoch, NOW);

/** A nominee to which a gang that has ended has left its tokens. */
async function holding(of: (left: Job) => Partial<PreemptionRecord>): Promise<Job> {
  const [nominee, left] = [await planner.submit(), await running()];
  const [outcome] = await preempt([recordOf(nominee, of(left))]);
  assert.equal(outcome?.kind, "recorded");
  const released = [{ jobUid: left.uid, admission: 1 }];
  await db.tx((tx) => giveBack(tx, { released, shrunk: [], withdrawn: [] }, NOW));
  const [hold] = await db.query("select amount from allocations where job_uid = $1 and hold", [nominee.uid]);
  assert.deepEqual(hold, { amount: 4 });
  return nominee;
}

const reserving = (keepsQuota: boolean, awaited: Job) => ({
  reservation: { sinceMs: null, keepsQuota, awaits: [{ jobUid: awaited.uid, admission: 1 }] },
});
const holdsReservation = () => holding((left) => reserving(true, left));
const holdsNomination = () => holding((left) => ({ victims: [victimOf(left)] }));

const parts: Readonly<Record<string, () => Promise<PreemptionRecord>>> = {
  "preempts a gang": async () => recordOf(await planner.submit(), { victims: [victimOf(await running())] }),
  "asks an elastic gang for members": async () => {
    return recordOf(await planner.submit(), { victims: [victimOf(await running(), { keeps: { Worker: 3 } })] });
  },
  "reserves the tokens of a gang": async () => recordOf(await planner.submit(), reserving(true, await running())),
  "reserves without the tokens that it held": async () => {
    const nominee = await holdsReservation();
    const planned = plannedFor(nominee, { generation: 2 });
    return { ...recordOf(nominee, reserving(false, await running())), planned };
  },
  "passes a nominee that holds tokens": async () => {
    const passed = await holdsNomination();
    const victims = [{ jobUid: (await running()).uid, admission: 1 }];
    return recordOf(await planner.submit(), { takesOver: [{ jobUid: passed.uid, admission: 1, victims }] });
  },
  "passes a reservation that holds tokens": async () => {
    const passed = await holdsReservation();
    return recordOf(await planner.submit(), { takesOver: [{ jobUid: passed.uid, admission: 1 }] });
  },
};

/** All combinations of three of these names at most, and all names: what a batch does adds up. */
function combinations(names: readonly string[]): readonly (readonly string[])[] {
  const all = names.reduce<readonly (readonly string[])[]>(
    (found, name) => found.flatMap((some) => [some, [...some, name]]),
    [[]],
  );
  return all.filter(({ length }) => length <= 3 || length === names.length);
}

const waits: number[] = [];
for (const names of combinations(Object.keys(parts))) {
  test(`a batch of preemptions: ${names.join(", ") || "nothing"}`, async () => {
    const records: PreemptionRecord[] = [];
    for (const name of names) records.push(await (parts[name] as () => Promise<PreemptionRecord>)());
    const waited = await grantsWaitFor(async () => {
      const outcomes = await preempt(records);
      assert.deepEqual(new Set(outcomes.map(({ kind }) => kind)), new Set(names.map(() => "recorded")));
    });
    assert.ok(waited <= STATEMENTS_AFTER_MAX, `${waited} statements`);
    waits.push(waited);
  });
}

test("some of these combinations run all statements that may follow the lock, and the sums stay right", async () => {
  assert.equal(Math.max(...waits), STATEMENTS_AFTER_MAX);
  assert.deepEqual((await planner.store.pools.check(null)).sums, []);
});

const ends: Readonly<Record<string, (job: Job) => Promise<unknown>>> = {
  "is cancelled": ({ namespace, name }) => planner.store.intake.requestCancel({ namespace, name }, "enough", NOW),
  "is deleted": ({ namespace, name }) => planner.store.intake.requestDelete({ namespace, name }, NOW),
  "is suspended": ({ namespace, name }) => {
    const event = { type: "Normal", reason: "Suspended", message: "" } as const;
    const suspend = (job: Job) => {
      const runPolicy = { ...job.spec.runPolicy, suspend: true };
      const status = { ...withoutNomination(job.status), phase: "SUSPENDED" as const };
      const changed = { ...job, spec: { ...job.spec, runPolicy }, status, version: job.version + 1 };
      return { kind: "changed" as const, job: changed, event };
    };
    return planner.store.intake.changeJob({ namespace, name }, suspend, NOW);
  },
  "is given up by the planner": ({ uid }) => planner.store.planner.recordWithdrawals([uid], planner.plannerEpoch, NOW),
};
for (const [what, act] of Object.entries(ends)) {
  test(`a nominee that holds tokens ${what}`, async () => {
    const nominee = await holdsNomination();
    const waited = await grantsWaitFor(() => act(nominee));
    assert.ok(waited > 0 && waited <= STATEMENTS_AFTER_MAX, `${waited} statements`);
    const left = await db.query("select 1 from allocations where job_uid = $1 and released_ms is null", [nominee.uid]);
    assert.deepEqual(left, []);
  });
}
