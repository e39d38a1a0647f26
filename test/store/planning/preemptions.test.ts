import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";
import type { Db } from "../../../src/adapters/store/db/db.ts";
import type { Job } from "../../../src/core/job/job.ts";
import type { PreemptionReason } from "../../../src/core/job/preemption.ts";
import type { PlannedAdmission } from "../../../src/core/plan/model/plan-types.ts";
import type { PlannedVictim, PreemptionRecord } from "../../../src/core/plan/model/preemption.ts";
import { BUDGET_WINDOW_MS, DEFAULT_POLICY } from "../../../src/core/plan/model/queue-policy.ts";
import { FleetFollower } from "../../../src/planner/fleet-follower.ts";
import { onEachDatabase, onPostgres } from "../../support/databases.ts";
import { FLAVOR, NOW, plannedFor } from "../jobs.ts";
import { freshPlanner, type TestPlanner } from "../planner-fixture.ts";

const NO_TOKENS = { allocations: [] };
const STALE = { kind: "stale" };

function actions(fixture: () => TestPlanner & { readonly db: Db }) {
  /** A job that runs under its first admission. */
  const running = async (): Promise<Job> => {
    const { uid } = await fixture().submit();
    const job = await fixture().load(uid);
    const { admission_counter: counter = 0 } = (await counterOf(fixture().db)) ?? {};
    const planned = plannedFor(job, { ...NO_TOKENS, admissionCounter: counter });
    assert.equal(await fixture().admit(planned), "recorded");
    return fixture().load(uid);
  };
  const record = (
    nominee: Job,
    victims: readonly PlannedVictim[],
    changes: Partial<PlannedAdmission> = {},
  ): PreemptionRecord => {
    const { queue } = nominee.spec.runPolicy.schedulingPolicy;
    return { planned: plannedFor(nominee, { ...NO_TOKENS, ...changes }), victims, queue };
  };
  return {
    running,
    record,
    preempt: (records: readonly PreemptionRecord[], plannerEpoch = fixture().plannerEpoch) => {
      return fixture().store.planner.recordPreemptions(records, plannerEpoch, NOW + 5);
    },
    withdraw: (jobs: readonly Job[], plannerEpoch = fixture().plannerEpoch) => {
      const uids = jobs.map(({ uid }) => uid);
      return fixture().store.planner.recordWithdrawals(uids, plannerEpoch, NOW + 6);
    },
  };
}

async function counterOf(db: Db) {
  const [row] = await db.query<{ admission_counter: number }>(
    "select admission_counter from clusters where name = 'east'",
  );
  return row;
}

function victimOf(job: Job, changes: Partial<PlannedVictim> = {}): PlannedVictim {
  const reason: PreemptionReason = "InCohortReclamation";
  return { jobUid: job.uid, queue: "research", admission: 1, members: { Worker: 4 }, reason, ...changes };
}

onEachDatabase((openDb) => {
  let db: Db;
  let planner: TestPlanner & { readonly db: Db };
  const { running, record, preempt, withdraw } = actions(() => planner);
  const eventsOf = async ({ uid }: Job) => {
    const rows = await db.query<{ reason: string }>("select reason from job_events where job_uid = $1 order by id", [
      uid,
    ]);
    return rows.map(({ reason }) => reason);
  };
  /** Nothing of a preemption is recorded: neither job has a new version. */
  const isUntouched = async (jobs: readonly Job[]) => {
    for (const { uid, version } of jobs) assert.equal((await planner.load(uid)).version, version);
  };
  before(async () => {
    db = await openDb();
  });
  after(() => db.close());
  beforeEach(async () => {
    planner = { ...(await freshPlanner(db)), db };
  });

  test("a preemption is recorded on both sides, wakes the victim's worker, and reaches the planner", async () => {
    const [a, b] = [await planner.submit(), await running()];
    const [outcome] = await preempt([record(a, [victimOf(b)])]);
    assert.deepEqual(outcome, { kind: "recorded", evicted: [victimOf(b)] });
    const [nominee, victim] = [await planner.load(a.uid), await planner.load(b.uid)];
    assert.deepEqual(nominee.status.nomination, {
      cluster: "east",
      flavors: { "nvidia.com/gpu": "gpu/h100" },
      members: { Worker: 4 },
      generation: 2,
      victims: [{ jobUid: b.uid, admission: 1 }],
      sinceMs: NOW + 5,
    });
    assert.deepEqual([nominee.status.phase, nominee.status.waiting?.reason], ["WAITING", "Preempting"]);
    assert.match(nominee.status.waiting?.message ?? "", new RegExp(`have ended: team/${b.name}$`));
    assert.equal(victim.status.eviction?.preemption, "InCohortReclamation");
    assert.match(victim.status.eviction.message, new RegExp(`preempted for team/${a.name},`));
    assert.equal(victim.admissions[0]?.state, "live", "until its worker has seen the request");
    const [row] = await db.query<{ at: number }>("select recheck_at_ms as at from jobs where uid = $1", [b.uid]);
    assert.equal(row?.at, NOW + 5);
    assert.deepEqual((await eventsOf(a)).at(-1), "Preempting");
    const gangs = await planner.gangs([a.uid, b.uid]);
    assert.deepEqual(gangs.find(({ uid }) => uid === a.uid)?.nomination, nominee.status.nomination);
    assert.equal(gangs.find(({ uid }) => uid === a.uid)?.generation, 2);
    assert.equal(gangs.find(({ uid }) => uid === b.uid)?.evicted, true);
  });

  test("members of an elastic victim are to be given up: no preemption of its job, and the planner knows", async () => {
    const [a, b] = [await planner.submit(), await running()];
    const victim = victimOf(b, { keeps: { Worker: 3 } });
    assert.deepEqual(await preempt([record(a, [victim])]), [{ kind: "recorded", evicted: [] }]);
    const after = await planner.load(b.uid);
    assert.deepEqual(after.status.shrink, { admission: 1, keeps: { Worker: 3 } });
    assert.deepEqual(
      [after.status.phase, after.status.eviction, after.status.attempts.preemptions],
      [b.status.phase, undefined, undefined],
    );
    assert.deepEqual((await eventsOf(b)).at(-1), "GivesUpMembers");
    const gangs = await planner.gangs([a.uid, b.uid]);
    assert.deepEqual(gangs.find(({ uid }) => uid === b.uid)?.shrinksTo, { Worker: 3 });
    assert.deepEqual(gangs.find(({ uid }) => uid === a.uid)?.nomination?.victims, [
      { jobUid: b.uid, admission: 1, keeps: { Worker: 3 } },
    ]);
    assert.deepEqual(await preempt([record(await planner.submit(), [victim])]), [STALE], "it gives up members already");
  });

  test("a reservation names the gangs that it waits for, and undoes none of them", async () => {
    const [a, b] = [await planner.submit(), await running()];
    const awaits = [{ jobUid: b.uid, admission: 1 }];
    const reservation = { sinceMs: null, keepsQuota: true, awaits };
    const [outcome] = await preempt([{ ...record(a, []), reservation }]);
    assert.deepEqual(outcome, { kind: "recorded", evicted: [] });
    const reserved = await planner.load(a.uid);
    const { victims, reservation: facts } = reserved.status.nomination ?? {};
    assert.deepEqual([victims, facts], [awaits, { sinceMs: NOW + 5, keepsQuota: true }]);
    assert.equal(reserved.status.waiting?.reason, "Reserving");
    assert.match(reserved.status.waiting?.message ?? "", new RegExp(`team/${b.name}; nobody knows when it starts$`));
    assert.equal((await planner.load(b.uid)).status.eviction, undefined);
    assert.deepEqual((await eventsOf(a)).at(-1), "Reserving");
    const again = { ...record(reserved, [], { generation: 2 }), reservation: { ...reservation, sinceMs: NOW } };
    assert.equal((await preempt([again]))[0]?.kind, "recorded");
    assert.equal((await planner.load(a.uid)).status.nomination?.reservation?.sinceMs, NOW);
    assert.equal((await eventsOf(a)).filter((event) => event === "Reserving").length, 1, "it has not moved");
    assert.deepEqual(await withdraw([a]), [a.uid]);
    assert.deepEqual((await eventsOf(a)).at(-1), "ReservationWithdrawn");
  });

  test("a preemption that is recorded again changes nothing", async () => {
    const [a, b] = [await planner.submit(), await running()];
    const records = [record(a, [victimOf(b)])];
    await preempt(records);
    const jobs = [await planner.load(a.uid), await planner.load(b.uid)];
    assert.deepEqual(await preempt(records), [STALE]);
    assert.deepEqual(await preempt([...records, ...records]), [STALE, STALE]);
    await isUntouched(jobs);
    const [c, x] = [await planner.submit(), await running()];
    const twice = await preempt([record(c, [victimOf(x)]), record(c, [victimOf(b)])]);
    assert.deepEqual([twice[0]?.kind, twice[1]], ["recorded", STALE], "one nomination of a job in one batch");
    assert.deepEqual((await planner.load(c.uid)).status.nomination?.victims, [{ jobUid: x.uid, admission: 1 }]);
  });

  const guards: Record<string, (a: Job, b: Job) => PreemptionRecord> = {
    "another generation of the nominee": (a, b) => record(a, [victimOf(b)], { generation: 2 }),
    "another ask of the nominee": (a, b) => record(a, [victimOf(b)], { askHash: "other" }),
    "another admission of a victim": (a, b) => record(a, [victimOf(b, { admission: 2 })]),
    "other members of a victim": (a, b) => record(a, [victimOf(b, { members: { Worker: 3 } })]),
    "a victim that is not there": (a, b) => record(a, [victimOf(b), victimOf(b, { jobUid: NOBODY })]),
    "a victim that waits": (a) => record(a, [victimOf(a)]),
    "a nominee that runs": (_, b) => record(b, [], { generation: 2 }),
  };
  for (const [what, planned] of Object.entries(guards)) {
    test(`nothing is recorded of ${what}`, async () => {
      const [a, b] = [await planner.submit(), await running()];
      assert.deepEqual(await preempt([planned(a, b)]), [STALE]);
      await isUntouched([a, b]);
    });
  }

  test("nothing is recorded of a nominee whose gang a program of the version before has left behind", async () => {
    const [a, b] = [await planner.submit(), await running()];
    await db.query("update jobs set gang_version = null where uid = $1", [a.uid]);
    assert.deepEqual(await preempt([record(a, [victimOf(b)])]), [STALE]);
    await isUntouched([a, b]);
  });

  test("nothing is recorded by another planner, or in a queue that is stopped", async () => {
    const [a, b] = [await planner.submit(), await running()];
    assert.deepEqual(await preempt([record(a, [victimOf(b)])], planner.plannerEpoch + 1), [STALE]);
    const queue = await planner.store.admin.getQueue("research");
    assert.ok(queue);
    await planner.store.admin.updateQueue({ ...queue, stopPolicy: "HOLD", version: 0 });
    await planner.store.admin.createQueue({ name: "open", strategy: "STRICT_FIFO", quotas: [] });
    const other = await planner.submit({ queue: "open" });
    const records = [record(a, [victimOf(b)]), record(other, [])];
    assert.deepEqual(await preempt(records), [STALE, { kind: "recorded", evicted: [] }]);
    await isUntouched([a, b]);
    await planner.store.admin.updateQueue({ ...queue, stopPolicy: "NONE", version: 0 });
    assert.equal((await preempt([record(a, [victimOf(b)])]))[0]?.kind, "recorded");
  });

  test("in a batch each preemption has its own fate", async () => {
    const [a, b, c] = [await planner.submit(), await planner.submit(), await planner.submit()];
    const [x, y, z] = [await running(), await running(), await running()];
    await planner.store.intake.requestCancel({ namespace: y.namespace, name: y.name }, "enough", NOW);
    const outcomes = await preempt([
      record(a, [victimOf(x)]),
      record(b, [victimOf(z), victimOf(y)]),
      record(c, [victimOf(x), victimOf(z)]),
    ]);
    assert.deepEqual(
      outcomes.map((outcome) => (outcome.kind === "recorded" ? outcome.evicted.map(({ jobUid }) => jobUid) : "stale")),
      [[x.uid], "stale", [z.uid]],
      "a victim of two is asked once",
    );
    await isUntouched([b]);
    assert.equal((await planner.load(y.uid)).status.eviction, undefined);
    assert.equal((await planner.load(c.uid)).status.nomination?.victims.length, 2);
  });

  test("a batch of more jobs than a transaction takes is recorded whole, in its order", async () => {
    const [a, b, x] = [await planner.submit(), await planner.submit(), await running()];
    const many = Array.from({ length: 300 }, () => victimOf(x, { jobUid: NOBODY }));
    const outcomes = await preempt([record(a, [victimOf(x)]), record(b, many), record(b, [victimOf(x)])]);
    assert.deepEqual(
      outcomes.map(({ kind }) => kind),
      ["recorded", "stale", "recorded"],
    );
    assert.deepEqual(await preempt([]), []);
  });

  test("victims are counted for the nominee's queue, and reach the planner if that has a budget", async () => {
    const setBudget = async (preemptionsPerHour: number | null) => {
      const policy = { ...DEFAULT_POLICY, preemptionsPerHour };
      const quotas = [{ flavor: FLAVOR, resource: "nvidia.com/gpu", nominal: 8 }];
      const queue = { name: "research", strategy: "BEST_EFFORT_FIFO" as const, quotas, policy, version: 0 };
      assert.equal((await planner.store.admin.updateQueue(queue)).kind, "done");
    };
    const follower = new FleetFollower(planner.store.planner);
    const counted = async () => {
      await follower.catchUp();
      return follower.planner.queueOf("research")?.preempted;
    };
    const [first, second, third] = [await planner.submit(), await planner.submit(), await planner.submit()];
    const [a, b, c] = [await running(), await running(), await running()];
    await preempt([record(first, [victimOf(a)])]);
    assert.equal(await counted(), undefined);
    await setBudget(5);
    assert.deepEqual(await counted(), [{ atMs: NOW + 5, victims: 1 }]);
    await preempt([record(second, [victimOf(b)]), record(third, [victimOf(c, { admission: 9 })])]);
    assert.deepEqual(await counted(), [{ atMs: NOW + 5, victims: 2 }]);
    // A victim that is to be undone already costs nothing more, and one of a stale preemption nothing at all.
    await preempt([record(third, [victimOf(a)])]);
    assert.deepEqual(await counted(), [{ atMs: NOW + 5, victims: 2 }]);
  });

  test("preemptions of more than an hour ago are forgotten with the next one", async () => {
    await db.query(
      "insert into queue_preemptions (queue, at_ms, victims) values ('research', $1, 3), ('other', $1, 1)",
      [NOW + 5 - BUDGET_WINDOW_MS],
    );
    await preempt([record(await planner.submit(), [victimOf(await running())])]);
    const rows = await db.query("select queue, at_ms, victims from queue_preemptions order by queue");
    assert.deepEqual(rows, [
      { queue: "other", at_ms: NOW + 5 - BUDGET_WINDOW_MS, victims: 1 },
      { queue: "research", at_ms: NOW + 5, victims: 1 },
    ]);
  });

  test("a nomination is given up once, and by the planner that leads", async () => {
    const [a, b, x] = [await planner.submit(), await planner.submit(), await running()];
    await preempt([record(a, [victimOf(x)])]);
    assert.deepEqual(await withdraw([a], planner.plannerEpoch + 1), []);
    assert.deepEqual(await withdraw([a, b]), [a.uid]);
    const given = await planner.load(a.uid);
    assert.deepEqual([given.status.nomination, given.status.waiting?.reason], [undefined, "NotEvaluated"]);
    assert.deepEqual((await eventsOf(a)).at(-1), "PreemptionWithdrawn");
    assert.deepEqual(await withdraw([a]), []);
    await isUntouched([b, given]);
    assert.deepEqual(await withdraw([]), []);
  });

  test("a nominee that is admitted is one no more", async () => {
    const [a, x] = [await planner.submit(), await running()];
    await preempt([record(a, [victimOf(x)])]);
    const { admission_counter: counter = 0 } = (await counterOf(db)) ?? {};
    const planned = plannedFor(a, { ...NO_TOKENS, generation: 2, admissionCounter: counter });
    assert.equal(await planner.admit(planned), "recorded");
    const admitted = await planner.load(a.uid);
    assert.deepEqual([admitted.status.phase, admitted.status.nomination], ["ADMITTED", undefined]);
  });
});

const NOBODY = "01900000-0000-7000-8000-ffffffffffff";

onPostgres((openDb) => {
  test("a preemption of which another transaction has locked a job is left out, and holds up no other", async (t) => {
    const db = await openDb();
    t.after(() => db.close());
    const planner = { ...(await freshPlanner(db)), db };
    const { running, record, preempt } = actions(() => planner);
    const [a, b] = [await planner.submit(), await planner.submit()];
    const [x, y] = [await running(), await running()];
    const outcomes = await db.tx(async (tx) => {
      await tx.query("select 1 from jobs where uid = $1 for no key update", [x.uid]);
      return preempt([record(a, [victimOf(x)]), record(b, [victimOf(y)])]);
    });
    assert.deepEqual(
      outcomes.map(({ kind }) => kind),
      ["stale", "recorded"],
    );
    assert.equal((await preempt([record(a, [victimOf(x)])]))[0]?.kind, "recorded");
  });
});
