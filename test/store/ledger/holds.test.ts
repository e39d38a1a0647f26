import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";
import { setImmediate } from "node:timers/promises";
import { inProcessCounters } from "../../../src/adapters/counters/in-process/in-process-counters.ts";
import { type Db, json } from "../../../src/adapters/store/db/db.ts";
import { changeHeirs, giveBack } from "../../../src/adapters/store/ledger/give-back.ts";
import type { NamedHeir } from "../../../src/adapters/store/ledger/name-heirs.ts";
import { fleetStore } from "../../../src/adapters/store/store.ts";
import type { Job } from "../../../src/core/job/job.ts";
import { withoutNomination } from "../../../src/core/job/nomination.ts";
import type { AdmitOutcome } from "../../../src/core/plan/model/plan-types.ts";
import type { PreemptionRecord } from "../../../src/core/plan/model/preemption.ts";
import { overtakenMessage } from "../../../src/core/plan/model/preemption-messages.ts";
import { FleetFollower } from "../../../src/planner/fleet-follower.ts";
import { systemClock } from "../../../src/runtime/clock.ts";
import { allocate } from "../../../src/tokens/allocate.ts";
import { confirmGivenBack } from "../../../src/tokens/confirm-given-back.ts";
import { onEachDatabase } from "../../support/databases.ts";
import { OWN_KINDS } from "../../support/kinds.ts";
import { ledgerAt } from "../../support/ledger-at.ts";
import { gangOfPlanned } from "../../support/planned-gang.ts";
import { soleDomain } from "../../support/sole-quota.ts";
import { FLAVOR, NO_LIMIT, NOW, plannedFor } from "../jobs.ts";
import { freshPlanner, type TestPlanner } from "../planner-fixture.ts";

onEachDatabase((openDb) => {
  let db: Db;
  let planner: TestPlanner;
  let fences: bigint;
  let counter: number;
  before(async () => {
    db = await openDb();
  });
  after(() => db.close());
  beforeEach(async () => {
    planner = await freshPlanner(db);
    fences = BigInt(planner.quotaEpoch) << 32n;
    counter = 0;
  });

  /** Admits a job that needs `need` GPUs, of which the counters have granted `granted`; the pool has 8. */
  async function admit(job: Job, need: number, granted = need, generation = 1): Promise<AdmitOutcome> {
    const { store, quotaEpoch, plannerEpoch } = planner;
    const plain = plannedFor(job, { admissionCounter: counter, generation });
    const planned = { ...plain, allocations: plain.allocations.map((one) => ({ ...one, amount: need })) };
    fences += 1n;
    const token = `job/${job.uid}/admission/1/step/1/${plannerEpoch}`;
    const allocations = planned.allocations.map((one) => ({ ...one, ...NO_LIMIT, token, amount: granted }));
    const record = {
      planned,
      gang: gangOfPlanned(planned),
      allocations: granted === 0 ? [] : allocations,
      fence: granted === 0 ? null : fences,
      chain: null,
    };
    const counters = new Map([["east", counter]]);
    const batch = { records: [record], counters, quotaEpoch, plannerEpoch, nowMs: NOW };
    const [outcome = "stale"] = await store.planner.recordAdmissions(batch);
    if (outcome === "recorded") counter += 1;
    return outcome;
  }

  const heirOf = (job: Job, need: number, victims: readonly Job[]): NamedHeir => ({
    jobUid: job.uid,
    admission: 1,
    queue: "research",
    project: job.project,
    namespace: job.namespace,
    needs: [{ pool: FLAVOR, amount: need }],
    victims: victims.map(({ uid }) => ({ jobUid: uid, admission: 1 })),
  });

  /** Nominates a job, as its record does. */
  const nominate = (job: Job, need: number, victims: readonly Job[], nomination: object = {}) =>
    db.tx(async (tx) => {
      await tx.query("select 1 from jobs where uid = $1 for update", [job.uid]);
      await tx.query("update jobs set status = (status::jsonb || $2::jsonb)::json where uid = $1", [
        job.uid,
        json({ nomination }),
      ]);
      await changeHeirs(tx, { named: [heirOf(job, need, victims)], withdrawn: [] }, NOW);
    });

  const end = (...jobs: readonly Job[]) =>
    db.tx((tx) => {
      const released = jobs.map(({ uid }) => ({ jobUid: uid, admission: 1 }));
      return giveBack(tx, { released, shrunk: [], withdrawn: [] }, NOW);
    });

  /** The live tokens: whose they are, and whether they are holds. */
  async function live(): Promise<readonly (readonly [string, number, boolean])[]> {
    const rows = await db.query<{ uid: string; amount: number; hold: boolean }>(
      `select job_uid as uid, sum(amount)::int as amount, hold
         from allocations where released_ms is null group by 1, 3 order by 1, 3`,
    );
    return rows.map(({ uid, amount, hold }) => [uid, amount, hold]);
  }

  async function used(): Promise<number> {
    assert.deepEqual((await planner.store.pools.check(null)).sums, []);
    return (await ledgerAt(planner.store).readUsed()).find(({ scope }) => scope.kind === "pool")?.used ?? 0;
  }

  async function submit(): Promise<readonly [Job, Job, Job]> {
    return [await planner.submit(), await planner.submit(), await planner.submit()];
  }

  const lacks = () => db.query("select lacks from token_heirs");

  test("a nominee boards with what it holds; only the rest is granted, and its members give back both", async () => {
    const [nominee, victim, other] = await submit();
    assert.equal(await admit(victim, 6), "recorded");
    assert.equal(await admit(other, 2), "recorded");
    await nominate(nominee, 5, [victim]);
    await end(victim);
    assert.deepEqual(await live(), [
      [nominee.uid, 5, true],
      [other.uid, 2, false],
    ]);
    assert.equal(await used(), 7);
    assert.deepEqual(await lacks(), [{ lacks: 0 }]);
    assert.deepEqual((await planner.store.pools.check(null)).orphans, []);
    assert.equal(await admit(nominee, 8, 3), "refusedByLedger", "its whole line must fit beside others");
    assert.deepEqual((await live())[0], [nominee.uid, 5, true]);
    await end(other);
    assert.equal(await admit(nominee, 8, 2), "stale", "what it holds and gets must be all that it needs");
    assert.equal(await admit(nominee, 8, 3), "recorded");
    assert.deepEqual(await live(), [[nominee.uid, 8, false]]);
    assert.deepEqual(await lacks(), []);
    assert.equal(await used(), 8);
    await end(nominee);
    assert.equal(await used(), 0);
  });

  test("what drains after a nominee was admitted without it goes free", async () => {
    const [nominee, victim] = await submit();
    await admit(victim, 5);
    await nominate(nominee, 5, [victim]);
    assert.equal(await admit(nominee, 2), "recorded", "it fits by now with fewer members");
    await end(victim);
    assert.deepEqual(await live(), [[nominee.uid, 2, false]]);
    assert.equal(await used(), 2);
  });

  test("one batch gives up the holds of a reservation that borrows, and names the heir of another job", async () => {
    const [nominee, one, other] = await submit();
    const preempting = await planner.submit();
    await admit(one, 4);
    await admit(other, 2);
    await nominate(nominee, 4, [one]);
    await end(one);
    assert.equal(await used(), 6);
    const awaited = { jobUid: other.uid, admission: 1 };
    const reservation = { sinceMs: null, keepsQuota: false, awaits: [awaited] };
    const victim = { ...awaited, queue: "research", members: { Worker: 4 }, reason: "InClusterQueue" as const };
    const records = [
      { planned: plannedFor(nominee), victims: [], queue: "research", reservation },
      { planned: plannedFor(preempting), victims: [victim], queue: "research" },
    ];
    const outcomes = await planner.store.planner.recordPreemptions(records, planner.plannerEpoch, NOW);
    assert.deepEqual(
      outcomes.map(({ kind }) => kind),
      ["recorded", "recorded"],
    );
    assert.deepEqual(await live(), [[other.uid, 2, false]]);
    await end(other);
    assert.deepEqual(await live(), [[preempting.uid, 2, true]]);
  });

  test("a gang that passes a reservation takes over what it needs of its holds, which that lacks again", async () => {
    const [wide, one, small] = await submit();
    await admit(one, 6);
    await nominate(wide, 8, [one], { reservation: {} });
    await end(one);
    assert.deepEqual(await live(), [[wide.uid, 6, true]]);
    const planned = plannedFor(small);
    const record = {
      planned: { ...planned, allocations: planned.allocations.map((one) => ({ ...one, amount: 2 })) },
      victims: [],
      queue: "research",
      takesOver: [{ jobUid: wide.uid, admission: 1 }],
    };
    const [outcome] = await planner.store.planner.recordPreemptions([record], planner.plannerEpoch, NOW);
    assert.equal(outcome?.kind, "recorded");
    assert.deepEqual(await live(), [
      [wide.uid, 4, true],
      [small.uid, 2, true],
    ]);
    assert.equal(await used(), 6);
    assert.deepEqual(await db.query("select lacks from token_heirs order by lacks"), [{ lacks: 0 }, { lacks: 4 }]);
    const { waiting } = (await planner.load(small.uid)).status;
    const takes = "it boards in cluster east next, with tokens that it takes over from the reservation of";
    assert.equal(waiting?.message, `${takes} ${wide.namespace}/${wide.name}`);
    assert.equal(await admit(small, 2, 0, 2), "recorded");
    assert.deepEqual(await live(), [
      [wide.uid, 4, true],
      [small.uid, 2, false],
    ]);
  });

  test("one record gives a gang what the nominee holds that it passes, and what its victims leave", async () => {
    const [low, victim, high] = await submit();
    const free = await planner.submit();
    await admit(free, 2);
    await admit(victim, 6);
    const preempt = (nominee: Job, of: Partial<PreemptionRecord>, amount = 8) => {
      const planned = plannedFor(nominee);
      const allocations = planned.allocations.map((one) => ({ ...one, amount }));
      const record = { planned: { ...planned, allocations }, victims: [], queue: "research", ...of };
      return planner.store.planner.recordPreemptions([record], planner.plannerEpoch, NOW);
    };
    const evicted = { jobUid: victim.uid, admission: 1, queue: "research", members: { Worker: 4 } };
    await preempt(low, { victims: [{ ...evicted, reason: "InClusterQueue" }] });
    await db.tx((tx) => changeHeirs(tx, { named: [heirOf(low, 8, [free, victim])], withdrawn: [] }, NOW));
    await end(free);
    assert.deepEqual(
      await live(),
      [
        [low.uid, 2, true],
        [victim.uid, 6, false],
      ].sort(),
    );
    const passes = { jobUid: low.uid, admission: 1, victims: [{ jobUid: victim.uid, admission: 1 }] };
    assert.deepEqual(
      (await preempt(high, { takesOver: [passes] })).map(({ kind }) => kind),
      ["recorded"],
    );
    assert.deepEqual(
      await live(),
      [
        [high.uid, 2, true],
        [victim.uid, 6, false],
      ].sort(),
    );
    assert.deepEqual(
      (await db.query<{ uid: string }>("select job_uid as uid from token_heirs")).map(({ uid }) => uid),
      [high.uid],
    );
    await end(victim);
    assert.deepEqual(await live(), [[high.uid, 8, true]]);
    const name = (job: Job) => `${job.namespace}/${job.name}`;
    const { nomination, waiting } = (await planner.load(low.uid)).status;
    assert.equal(nomination, undefined);
    const taken = overtakenMessage(name(high));
    assert.equal(waiting?.message, `it is no longer nominated for cluster east; ${taken}`);
    const waits = "and waits until the gangs that are preempted for it have ended:";
    assert.equal(
      (await planner.load(high.uid)).status.waiting?.message,
      `it is nominated for cluster east in the place of ${name(low)}, ${waits} ${name(victim)}`,
    );
  });

  test("holds may cover all that an admission needs; its record releases those that it does not need", async () => {
    const [nominee, victim] = await submit();
    await admit(victim, 6);
    await nominate(nominee, 6, [victim]);
    await end(victim);
    assert.equal(await admit(nominee, 4, 0), "recorded");
    assert.deepEqual(await live(), [[nominee.uid, 4, false]]);
    assert.equal(await used(), 4);
  });

  test("a nominee whose holds stand above a limit boards once its whole line fits", async () => {
    const [nominee, victim] = await submit();
    await admit(victim, 6);
    await nominate(nominee, 6, [victim]);
    const quota = (nominal: number) =>
      db.query("update queue_quotas set nominal = $1 where queue = 'research'", [nominal]);
    await quota(5);
    await end(victim);
    assert.deepEqual(await live(), [[nominee.uid, 6, true]], "no limit refuses a hold");
    assert.equal(await admit(nominee, 6, 0), "refusedByLedger");
    assert.deepEqual(await live(), [[nominee.uid, 6, true]]);
    await quota(6);
    assert.equal(await admit(nominee, 6, 0), "recorded");
  });

  test("callers that ask all the time get nothing of what ends for a nominee", async () => {
    const [nominee, one, other] = await submit();
    await admit(one, 3);
    await admit(other, 3);
    await nominate(nominee, 6, [one, other]);
    const { store } = planner;
    const clock = systemClock();
    const counters = inProcessCounters();
    const domain = soleDomain({ clock, counters, ledger: store.ledgerOf("default", clock) });
    const epoch = await domain.epochs.openEpoch(5_000);
    let over = false;
    const call = async (holder: string) => {
      for (let at = 0; !over; at += 1) {
        const scope = { project: "p", namespace: "n", queue: "research", ...NO_LIMIT };
        const allocations = [{ pool: FLAVOR, token: `${holder}-${at}`, amount: 1, ...scope }];
        await allocate(domain, { allocations, holder: { kind: "caller", name: holder }, priority: 9 });
        // A refusal of counters in the process needs no event of the loop, on which the database depends.
        await setImmediate();
      }
    };
    const calls = Promise.all(["ann", "bob", "cat"].map(call));
    for (const victim of [one, other]) {
      await end(victim);
      await confirmGivenBack(domain, epoch);
    }
    over = true;
    await calls;
    await confirmGivenBack(domain, epoch);
    await domain.close();
    assert.deepEqual(
      (await live()).find(([uid]) => uid === nominee.uid),
      [nominee.uid, 6, true],
    );
    assert.equal(await used(), 8, "callers have got what was free all the time");
    assert.equal((await counters.used()).find(({ scope }) => scope.kind === "pool")?.used, 8);
  });

  test("counters that have not confirmed a victim's grant do not free it before they know its heir", async () => {
    const [nominee, victim] = await submit();
    await admit(victim, 6);
    const ledger = ledgerAt(planner.store, NOW);
    const [row] = await ledger.findLive([
      { pool: FLAVOR, token: `job/${victim.uid}/admission/1/step/1/${planner.plannerEpoch}` },
    ]);
    assert.ok(row);
    const voided = () => ledger.voidGrants([{ ...row, confirmed: false }]);
    assert.deepEqual(await voided(), ["live"]);
    await nominate(nominee, 6, [victim]);
    await end(victim);
    assert.deepEqual(await voided(), ["turnedOver"]);
    await ledger.confirmTurnOvers((await ledger.untoldTurnOvers(9)).map(({ to }) => to));
    assert.deepEqual(await voided(), ["gone"]);
  });

  test("what the counters know late is told in order, and a new epoch knows all of it", async () => {
    const [nominee, victim] = await submit();
    await admit(victim, 6);
    await nominate(nominee, 4, [victim]);
    await end(victim);
    const ledger = ledgerAt(planner.store, NOW);
    assert.deepEqual(await ledger.unconfirmedReleases(9), [], "the counters must not free it yet");
    const [turn, ...others] = await ledger.untoldTurnOvers(9);
    assert.deepEqual(others, []);
    assert.equal(turn?.from.token.split("/")[1], victim.uid);
    assert.deepEqual([turn?.from.kept, turn?.to.amount, turn?.to.fence], [2, 4, turn?.from.fence]);
    assert.deepEqual(turn?.to.holder, { kind: "admission", jobUid: nominee.uid, admission: 1 });
    await ledger.confirmTurnOvers([turn.to]);
    assert.deepEqual(await ledger.untoldTurnOvers(9), []);
    assert.equal((await ledger.unconfirmedReleases(9)).length, 1);
    await db.query("update allocations set untold = true where hold");
    const raised = await ledger.raiseEpoch(null);
    assert.ok(raised.kind === "raised");
    assert.deepEqual(
      raised.rows.map(({ holder, amount }) => [holder, amount]),
      [[turn.to.holder, 4]],
    );
    assert.deepEqual(await ledger.untoldTurnOvers(9), []);
    assert.deepEqual(await ledger.unconfirmedReleases(9), []);
  });

  test("a victim's heirs are served in the order in which they came, and a withdrawn one gets nothing", async () => {
    const [first, second, victim] = await submit();
    await admit(victim, 8);
    await nominate(first, 3, [victim]);
    await nominate(second, 4, [victim]);
    await end(victim);
    const expected = [
      [first.uid, 3, true],
      [second.uid, 4, true],
    ] as const;
    assert.deepEqual(await live(), expected);
    await db.tx((tx) => changeHeirs(tx, { named: [heirOf(second, 6, [first])], withdrawn: [first.uid] }, NOW));
    assert.deepEqual(await live(), [[second.uid, 6, true]], "a nominee may be a victim, too");
    assert.equal(await used(), 6);
    await db.tx((tx) => changeHeirs(tx, { named: [], withdrawn: [first.uid, second.uid] }, NOW));
    assert.deepEqual(await live(), []);
    assert.equal(await used(), 0);
    assert.deepEqual(await lacks(), []);
  });

  const gaveUp: Record<string, (nominee: Job) => Promise<unknown>> = {
    "the planner gives it up": ({ uid }) => planner.store.planner.recordWithdrawals([uid], planner.plannerEpoch, NOW),
    "its job is cancelled": ({ namespace, name }) => planner.store.intake.requestCancel({ namespace, name }, "", NOW),
    "its job is deleted": ({ namespace, name }) => planner.store.intake.requestDelete({ namespace, name }, NOW),
    "its job is changed": ({ namespace, name }) =>
      planner.store.intake.changeJob(
        { namespace, name },
        (job) => ({
          kind: "changed",
          job: { ...job, status: withoutNomination(job.status), version: job.version + 1 },
          event: { type: "Normal", reason: "Changed", message: "" },
        }),
        NOW,
      ),
  };
  for (const [why, giveUp] of Object.entries(gaveUp)) {
    test(`a preemption makes its nominee the heir of its victims, until ${why}`, async () => {
      const [nominee, victim, other] = await submit();
      await admit(victim, 5);
      await admit(other, 3);
      const victims = [victim, other].map(({ uid }) => ({
        jobUid: uid,
        queue: "research",
        admission: 1,
        members: { Worker: 4 },
        reason: "InClusterQueue" as const,
      }));
      const record = { planned: plannedFor(nominee), victims, queue: "research" };
      const [outcome] = await planner.store.planner.recordPreemptions([record], planner.plannerEpoch, NOW);
      assert.equal(outcome?.kind, "recorded");
      await end(victim);
      assert.deepEqual(await live(), [
        [nominee.uid, 4, true],
        [other.uid, 3, false],
      ]);
      await giveUp(nominee);
      assert.deepEqual(await live(), [[other.uid, 3, false]]);
      await end(other);
      assert.equal(await used(), 0);
      assert.deepEqual(await lacks(), []);
    });
  }

  const ends: Record<string, string> = {
    "is cancelled": `update jobs set cancel = '{"reason": "", "atMs": 1}' where uid = $1`,
    "is being deleted": "update jobs set delete_ms = 1 where uid = $1",
    "is gone": "delete from jobs where uid = $1",
    "is suspended": "update jobs set phase = 'SUSPENDED' where uid = $1",
    "is no nominee any more": "update jobs set status = (status::jsonb - 'nomination')::json where uid = $1",
  };
  for (const [what, sql] of Object.entries(ends)) {
    test(`the holds of a nominee that ${what} are released, whoever forgot that`, async () => {
      const [nominee, victim, other] = await submit();
      await admit(victim, 4);
      await admit(other, 4);
      await nominate(nominee, 6, [victim, other]);
      await end(victim);
      assert.equal(await ledgerAt(planner.store, NOW).withdrawEnded(), 0);
      await db.query(sql, [nominee.uid]);
      assert.equal(await ledgerAt(planner.store, NOW, "elsewhere").withdrawEnded(), 0);
      assert.equal(await ledgerAt(planner.store, NOW).withdrawEnded(), 1);
      assert.deepEqual(await live(), [[other.uid, 4, false]]);
      await end(other);
      assert.equal(await used(), 0, "what ends later is free");
      assert.equal(await ledgerAt(planner.store, NOW).withdrawEnded(), 0);
    });
  }

  test("the planner's state knows what nominees hold, also if no sum has changed", async () => {
    const [nominee, victim, other] = await submit();
    await admit(victim, 3);
    await admit(other, 4);
    await nominate(nominee, 8, [victim, other]);
    const follower = new FleetFollower(fleetStore(db, OWN_KINDS));
    const holds = async () => {
      await follower.catchUp();
      return follower.planner.holdsOf(nominee.uid);
    };
    assert.equal(await holds(), null);
    const sums = () => db.query("select pool, scope, name, used from allocation_sums order by pool, scope, name");
    const before = await sums();
    await end(victim);
    assert.deepEqual(await holds(), { [FLAVOR]: 3 });
    await end(other);
    assert.deepEqual(await holds(), { [FLAVOR]: 7 });
    assert.deepEqual(await sums(), before);
    await db.tx((tx) => changeHeirs(tx, { named: [], withdrawn: [nominee.uid] }, NOW));
    assert.equal(await holds(), null);
  });

  test("admins see holds, and may release them", async () => {
    const [nominee, victim] = await submit();
    await admit(victim, 6);
    await nominate(nominee, 6, [victim]);
    await end(victim);
    const filter = { pool: null, project: null, namespace: null, holder: null, grantedBeforeMs: null };
    const page = await planner.store.pools.listAllocations({ filter, pageSize: 9, after: null });
    assert.ok(page !== "badCursor");
    const [hold] = page.allocations;
    assert.match(hold?.token ?? "", new RegExp(`^job/${nominee.uid}/hold/`));
    assert.equal(hold?.holderText, `job/${nominee.namespace}/${nominee.name}/1`);
    assert.deepEqual((await planner.store.pools.repair(null)).orphans, []);
    const forced = { pool: FLAVOR, token: hold?.token ?? "", reason: "needed", actor: "admin" };
    assert.equal((await planner.store.pools.forceRelease(forced)).kind, "released");
    assert.deepEqual(await live(), []);
    assert.equal(await used(), 0);
  });

  test("a repair releases holds of nobody", async () => {
    const [nominee, victim] = await submit();
    await admit(victim, 6);
    await nominate(nominee, 6, [victim]);
    await end(victim);
    await db.query("delete from token_heirs");
    assert.equal((await planner.store.pools.repair(null)).orphans.length, 1);
    assert.deepEqual(await live(), []);
  });

  test("tokens that a plugin asked for stay with its job until it releases them, and have no heir", async () => {
    const [nominee, victim] = await submit();
    await admit(victim, 3);
    const { store, quotaEpoch } = planner;
    fences += 1n;
    const holder = { kind: "admission", jobUid: victim.uid, admission: 1 } as const;
    const [planned] = plannedFor(victim).allocations;
    assert.ok(planned);
    const allocations = [{ ...planned, ...NO_LIMIT, token: "licence", amount: 2 }];
    await ledgerAt(store, NOW).commit(quotaEpoch, [{ allocations, holder, fence: fences }]);
    await nominate(nominee, 8, [victim]);
    await end(victim);
    assert.deepEqual(await live(), [[nominee.uid, 3, true]]);
    assert.equal(await used(), 3);
  });
});
