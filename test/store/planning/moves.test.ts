/** One transaction takes a gang from a lost cluster to another one: its admissions, its tokens, its job. */
import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";
import type { Db } from "../../../src/adapters/store/db/db.ts";
import type { Job } from "../../../src/core/job/job.ts";
import type { AdmitOutcome, PlannedAdmission } from "../../../src/core/plan/model/plan-types.ts";
import { onEachDatabase } from "../../support/databases.ts";
import { ledgerAt } from "../../support/ledger-at.ts";
import { gangOfPlanned } from "../../support/planned-gang.ts";
import { recordStep } from "../db.ts";
import { FLAVOR, NO_LIMIT, NOW, plannedFor } from "../jobs.ts";
import { agrees } from "../ledger-fixture.ts";
import { freshPlanner, type TestPlanner } from "../planner-fixture.ts";

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

  const setLost = (cluster: string, isLost: boolean) =>
    db.query("update clusters set lost_ms = $2 where name = $1", [cluster, isLost ? 1 : null]);

  /** A job that ran with 4 GPUs in east, which is lost, and that is to run elsewhere. */
  async function moving(): Promise<Job> {
    const { uid } = await planner.submit();
    assert.equal(await planner.admit(plannedFor(await planner.load(uid))), "recorded");
    const job = await planner.load(uid);
    const status = { ...job.status, phase: "RUNNING" as const, move: { admission: 1, sinceMs: NOW, lostMs: 1 } };
    const { admissions, deleteTimeMs } = job;
    await recordStep(planner.store, job, { status, admissions, deleteTimeMs, events: [] });
    await setLost("east", true);
    return planner.load(uid);
  }

  type Move = Partial<PlannedAdmission> & { readonly needs?: number; readonly granted?: number };

  /** Records that a gang moves to west, where it needs so many GPUs, of which the counters have granted some. */
  async function move(job: Job, { needs = 4, granted = 0, ...changes }: Move = {}): Promise<AdmitOutcome | undefined> {
    const [gang] = await planner.gangs([job.uid]);
    assert.ok(gang);
    const { generation } = gang;
    const to = { admission: 2, movesFrom: 1, cluster: "west", generation };
    const planned = plannedFor(job, { ...to, ...changes });
    const amounts = (amount: number) => planned.allocations.map((one) => ({ ...one, amount }));
    const token = `job/${job.uid}/admission/2/grant`;
    const allocations = granted === 0 ? [] : amounts(granted).map((one) => ({ ...one, ...NO_LIMIT, token }));
    const fence = granted === 0 ? null : (BigInt(planner.quotaEpoch) << 32n) + 99n;
    const { plannerEpoch, quotaEpoch } = planner;
    const [outcome] = await planner.store.planner.recordAdmissions({
      records: [
        {
          planned: { ...planned, allocations: amounts(needs) },
          allocations,
          fence,
          chain: null,
          gang: gangOfPlanned(planned),
        },
      ],
      counters: new Map([["west", 0]]),
      plannerEpoch,
      quotaEpoch,
      nowMs: NOW + 5,
    });
    return outcome;
  }

  /** What the job's admissions hold now, by number, and what the pool's sum says. */
  async function held({ uid }: Job) {
    const rows = await db.query<{ admission: number; amount: number; hold: boolean }>(
      `select admission, sum(amount)::int as amount, bool_or(hold) as hold from allocations
        where job_uid = $1 and released_ms is null group by admission order by admission`,
      [uid],
    );
    const [sum] = await db.query<{ used: number }>(
      "select used::int from allocation_sums where pool = $1 and scope = 'pool'",
      [FLAVOR],
    );
    return { rows, used: sum?.used };
  }

  const STAYS = { rows: [{ admission: 1, amount: 4, hold: false }], used: 4 };

  test("the planner sees that a gang is to move, and with which generation", async () => {
    const job = await moving();
    const [gang] = await planner.gangs([job.uid]);
    assert.deepEqual([gang?.moves, gang?.waits, gang?.lastAdmission], [true, false, 1]);
  });

  test("a gang that moves has its tokens under the new admission at once, and the old one is undone", async () => {
    const job = await moving();
    assert.equal(await move(job), "recorded");
    assert.deepEqual(await held(job), { rows: [{ admission: 2, amount: 4, hold: false }], used: 4 });
    assert.ok(await agrees(planner.store));
    const { status, admissions } = await planner.load(job.uid);
    assert.deepEqual([status.phase, status.move, status.startTimeMs], ["ADMITTED", undefined, null]);
    assert.deepEqual(
      admissions.map(({ number, state, cluster, tokensReleasedMs, goneMs, abandonedMs }) => {
        return [number, state, cluster, tokensReleasedMs, goneMs, abandonedMs];
      }),
      [
        [1, "undone", "east", NOW + 5, null, NOW + 5],
        [2, "live", "west", null, null, undefined],
      ],
    );
    const [first, second] = admissions.map(({ fence = "0" }) => BigInt(fence));
    assert.ok((second ?? 0n) > (first ?? 0n), "what the old copy writes is older");
    const events = await db.query<{ reason: string }>("select reason from job_events where job_uid = $1 order by id", [
      job.uid,
    ]);
    assert.deepEqual(
      events.slice(-2).map(({ reason }) => reason),
      ["PyTorchJobClusterLost", "PyTorchJobAdmitted"],
    );
    assert.equal(await move(job), "stale", "once");
  });

  /** What it needs there, what was granted of it, and what it holds then. */
  const sizes: readonly (readonly [needs: number, granted: number])[] = [
    [6, 2],
    [8, 4],
    [4, 1],
    [3, 0],
    [0, 0],
  ];
  for (const [needs, granted] of sizes) {
    test(`where it needs ${needs}, ${granted} of them new, it holds ${needs}, and the rest is free`, async () => {
      const job = await moving();
      assert.equal(await move(job, { needs, granted }), "recorded");
      const rows = needs === 0 ? [] : [{ admission: 2, amount: needs, hold: false }];
      assert.deepEqual(await held(job), { rows, used: needs });
      assert.ok(await agrees(planner.store));
    });
  }

  const stays: Readonly<Record<string, readonly [(job: Job) => Promise<Move>, AdmitOutcome]>> = {
    "its cluster answers": [async () => setLost("east", false).then(() => ({})), "stale"],
    "its cluster has answered, and is lost again": [
      async () => {
        await db.query("update clusters set lost_ms = 2 where name = 'east'");
        return {};
      },
      "stale",
    ],
    "its worker took the request back": [
      async (job) => {
        const { status, admissions, deleteTimeMs } = job;
        const { move: _, ...rest } = status;
        await recordStep(planner.store, job, { status: rest, admissions, deleteTimeMs, events: [] });
        return {};
      },
      "stale",
    ],
    "it was changed after the plan": [async () => ({ generation: 1 }), "stale"],
    "another admission of it is live": [async () => ({ movesFrom: 3 }), "stale"],
    "the other cluster has closed": [
      async () => {
        await planner.store.admin.setCordoned("west", true);
        return {};
      },
      "stale",
    ],
    "its tokens do not cover what it needs": [async () => ({ needs: 6 }), "stale"],
    "its queue may not use so much": [async () => ({ needs: 12, granted: 8 }), "refusedByLedger"],
  };
  for (const [why, [change, outcome]] of Object.entries(stays)) {
    test(`a gang keeps everything that it has if ${why}`, async () => {
      const job = await moving();
      const changes = await change(job);
      const before = await planner.load(job.uid);
      assert.equal(await move(job, changes), outcome);
      assert.deepEqual(await held(job), STAYS);
      assert.deepEqual(await planner.load(job.uid), before);
    });
  }

  test("it keeps what it holds though its quota was lowered, and what it does not need goes to heirs", async () => {
    const job = await moving();
    await db.query("update queue_quotas set nominal = 2");
    assert.equal(await move(job, { needs: 6, granted: 2 }), "refusedByLedger");
    const nominee = await planner.submit();
    const [heir] = await db.query<{ id: number }>(
      `insert into token_heirs (job_uid, admission, pool, queue, project, namespace, lacks)
       values ($1, 1, $2, 'research', 'default', 'ml', 8) returning id`,
      [nominee.uid, FLAVOR],
    );
    await db.query("update jobs set status = jsonb_set(status::jsonb, '{nomination}', '{}')::json where uid = $1", [
      nominee.uid,
    ]);
    await db.query("update allocations set heirs = array[$2::bigint] where job_uid = $1", [job.uid, heir?.id]);
    assert.equal(await move(job, { needs: 3 }), "recorded");
    assert.deepEqual((await held(job)).rows, [{ admission: 2, amount: 3, hold: false }]);
    assert.deepEqual((await held(nominee)).rows, [{ admission: 1, amount: 1, hold: true }]);
    assert.ok(await agrees(planner.store));
  });

  test("the counters hear that the tokens were turned over, and never that they were free", async () => {
    const job = await moving();
    await move(job, { needs: 3 });
    const told = await ledgerAt(planner.store).untoldTurnOvers(10);
    assert.deepEqual(
      told.map(({ from, to }) => [from.kept, to.amount, to.holder]),
      [[1, 3, { kind: "admission", jobUid: job.uid, admission: 2 }]],
    );
    await ledgerAt(planner.store).confirmTurnOvers(told.map(({ to }) => to));
    const released = await ledgerAt(planner.store).unconfirmedReleases(10);
    assert.deepEqual(
      released.map(({ token }) => token),
      told.map(({ from }) => from.token),
    );
  });
});
