import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";
import type { Db } from "../../../src/adapters/store/db/db.ts";
import type { Allocation, HeldToken, Scope } from "../../../src/core/quota/counters.ts";
import type { LedgerGrant } from "../../../src/core/quota/ledger.ts";
import { onEachDatabase } from "../../support/databases.ts";
import { ledgerAt } from "../../support/ledger-at.ts";
import { recordOne, type TestStore, takePlannerLease } from "../db.ts";
import { FLAVOR, NOW, newJob, plannedFor, sentOf } from "../jobs.ts";
import { agrees, allocation, caller, freshLedger, POOL, poolChange, releaseOf } from "../ledger-fixture.ts";

onEachDatabase((openDb) => {
  let db: Db;
  let store: TestStore;
  let epoch: number;
  let grant: (allocations: readonly Allocation[], holder?: LedgerGrant["holder"]) => LedgerGrant;
  before(async () => {
    db = await openDb();
  });
  after(() => db.close());
  beforeEach(async () => {
    ({ store, epoch, grant } = await freshLedger(db));
  });

  async function commit(...grants: readonly LedgerGrant[]) {
    return ledgerAt(store, NOW).commit(epoch, grants);
  }

  async function kinds(...grants: readonly LedgerGrant[]) {
    return (await commit(...grants)).map(({ kind }) => kind);
  }

  async function used(scope: Scope): Promise<number> {
    const key = JSON.stringify(scope);
    return (await ledgerAt(store).readUsed()).find((sum) => JSON.stringify(sum.scope) === key)?.used ?? 0;
  }

  const pool: Scope = { kind: "pool", pool: POOL };

  function held(of: LedgerGrant): HeldToken[] {
    return of.allocations.map(({ caps: _, ...rest }) => ({
      ...rest,
      holder: of.holder,
      fence: of.fence,
      confirmed: false,
    }));
  }

  test("a grant is committed once, and counted in its pool, project and namespace", async () => {
    const made = grant([allocation({ amount: 3 })]);
    assert.deepEqual(await kinds(made, made), ["committed", "committed"]);
    assert.deepEqual(await kinds(made), ["committed"]);
    assert.equal(await used(pool), 3);
    assert.equal(await used({ kind: "project", pool: POOL, project: "vision" }), 3);
    assert.equal(await used({ kind: "namespace", pool: POOL, project: "vision", namespace: "team" }), 3);
    const [row] = await ledgerAt(store).findLive([{ pool: POOL, token: "t1" }]);
    const { caps: _, ...recorded } = allocation({ amount: 3 });
    assert.deepEqual(row, { ...recorded, holder: caller("flyte"), fence: made.fence });
  });

  const limits: Record<
    string,
    { change: Parameters<typeof poolChange>[0]; allocation: Partial<Allocation>; scope: Scope; limit: number }
  > = {
    "the pool's quota": { change: { quota: 2 }, allocation: { amount: 3 }, scope: pool, limit: 2 },
    "the project's default": {
      change: { projectDefault: 2 },
      allocation: { amount: 3 },
      scope: { kind: "project", pool: POOL, project: "vision" },
      limit: 2,
    },
    "the namespace's default": {
      change: { namespaceDefault: 2 },
      allocation: { amount: 3 },
      scope: { kind: "namespace", pool: POOL, project: "vision", namespace: "team" },
      limit: 2,
    },
    "the request's own cap if it is tighter": {
      change: { projectDefault: 5 },
      allocation: { amount: 3, caps: { project: 1, namespace: null } },
      scope: { kind: "project", pool: POOL, project: "vision" },
      limit: 1,
    },
    "a cap of 0": {
      change: {},
      allocation: { caps: { project: null, namespace: 0 } },
      scope: { kind: "namespace", pool: POOL, project: "vision", namespace: "team" },
      limit: 0,
    },
    "a queue without a quota for the pool": {
      change: {},
      allocation: { queue: "research" },
      scope: { kind: "queue", pool: POOL, queue: "research" },
      limit: 0,
    },
    "an unregistered pool": {
      change: {},
      allocation: { pool: "ex:none" },
      scope: { kind: "pool", pool: "ex:none" },
      limit: 0,
    },
  };
  for (const [name, { change, allocation: asked, scope, limit }] of Object.entries(limits)) {
    test(`a grant above ${name} is refused with that limit, and leaves no trace`, async () => {
      await store.pools.register(poolChange(change), { version: 0, actor: "admin" });
      const wanted = allocation(asked);
      const [outcome] = await commit(grant([wanted]));
      assert.deepEqual(outcome, {
        kind: "over",
        violation: { scope, used: 0, limit, requested: wanted.amount, reservedForHead: 0 },
      });
      assert.deepEqual(await ledgerAt(store).readUsed(), []);
      assert.deepEqual(await ledgerAt(store).findLive([wanted]), []);
    });
  }

  test("a grant counts for later ones of its transaction, and is recorded as a whole or not at all", async () => {
    const outcomes = await kinds(
      grant([allocation({ token: "a", amount: 6 })]),
      grant([allocation({ token: "b", amount: 4 }), allocation({ token: "c", amount: 1 })]),
      grant([allocation({ token: "d", amount: 4 })]),
      grant([allocation({ token: "e", amount: 1 })]),
    );
    assert.deepEqual(outcomes, ["committed", "over", "committed", "over"]);
    assert.equal(await used(pool), 10);
    const live = await ledgerAt(store).findLive(["a", "b", "c", "d", "e"].map((token) => ({ pool: POOL, token })));
    assert.deepEqual(live.map(({ token }) => token).sort(), ["a", "d"]);
  });

  test("projects and namespaces are distinguished by their whole names", async () => {
    await store.pools.register(poolChange({ projectDefault: 2, namespaceDefault: 2 }), { version: 0, actor: "admin" });
    const scopes = [
      ["team", "a"],
      ["team1", "a"],
      ['team","a', "x"],
      ["team", 'a","x'],
    ] as const;
    for (const [at, [project, namespace]] of scopes.entries()) {
      const outcome = await kinds(grant([allocation({ token: `t${at}`, project, namespace, amount: at < 2 ? 2 : 1 })]));
      assert.deepEqual(outcome, [at === 3 ? "over" : "committed"]);
    }
    assert.equal(await agrees(store), true);
  });

  test("a token that is live under another fence is taken, and the answer names its holder", async () => {
    const first = grant([allocation({ amount: 2 })], caller("a"));
    await commit(first);
    const [outcome] = await commit(grant([allocation()], caller("b")));
    assert.deepEqual(outcome, {
      kind: "taken",
      pool: POOL,
      token: "t1",
      holder: caller("a"),
      amount: 2,
      fence: first.fence,
    });
    assert.deepEqual(await kinds({ ...first, holder: caller("b") }), ["taken"]);
    assert.deepEqual(await kinds({ ...first, allocations: [allocation({ amount: 1 })] }), ["taken"]);
  });

  test("a commit under another epoch and a fence of another epoch are refused", async () => {
    const old = grant([allocation()]);
    const raised = await ledgerAt(store).raiseEpoch(epoch);
    assert.ok(raised.kind === "raised");
    assert.deepEqual(await kinds(old), ["epochMoved"]);
    assert.deepEqual(await ledgerAt(store, NOW).commit(raised.epoch, [old]), [{ kind: "epochMoved" }]);
    assert.deepEqual(await ledgerAt(store).findLive([allocation()]), []);
  });

  test("a grant that was committed before a new epoch stays committed", async () => {
    const old = grant([allocation()]);
    await commit(old);
    const raised = await ledgerAt(store).raiseEpoch(null);
    assert.ok(raised.kind === "raised");
    assert.deepEqual(await ledgerAt(store, NOW).commit(raised.epoch, [old]), [{ kind: "committed" }]);
    assert.equal(await used(pool), 1);
  });

  test("one of the callers that expect the same epoch raises it, and the others get the present one", async () => {
    const [row] = [grant([allocation({ amount: 2 })])];
    await commit(row);
    const raised = await ledgerAt(store).raiseEpoch(epoch);
    assert.ok(raised.kind === "raised");
    assert.equal(raised.epoch, epoch + 1);
    assert.deepEqual(
      raised.rows.map(({ token, fence }) => [token, fence]),
      [["t1", row.fence]],
    );
    assert.deepEqual(raised.limits.pools.find(({ pool: name }) => name === POOL)?.quota, 10);
    assert.deepEqual(await ledgerAt(store).raiseEpoch(epoch), { kind: "moved", epoch: epoch + 1 });
    assert.equal((await ledgerAt(store, NOW).readDomain())?.epoch, epoch + 1);
  });

  test("a token is released exactly once, and its fence can never be committed again", async () => {
    const made = grant([allocation({ amount: 4 })]);
    await commit(made);
    const [first, second] = await ledgerAt(store, NOW).release([
      releaseOf({ token: "t1" }),
      releaseOf({ token: "t1" }),
    ]);
    assert.deepEqual(first?.kind === "released" && first.ref, { pool: POOL, token: "t1", fence: made.fence });
    assert.deepEqual(second, { kind: "notHeld" });
    assert.deepEqual(await ledgerAt(store, NOW).release([releaseOf({ token: "t1" })]), [{ kind: "notHeld" }]);
    assert.equal(await used(pool), 0);
    assert.deepEqual(await kinds(made), ["gone"]);
    assert.deepEqual(await kinds(grant([allocation({ amount: 10 })])), ["committed"]);
  });

  test("a grant is gone as a whole after one of its allocations was released", async () => {
    const made = grant([allocation({ token: "a" }), allocation({ token: "b" })]);
    await commit(made);
    await ledgerAt(store, NOW).release([releaseOf({ token: "a" })]);
    assert.deepEqual(await kinds(made), ["gone"]);
    assert.equal(await used(pool), 1);
  });

  const refused: Record<string, { asked: Parameters<typeof releaseOf>[0]; outcome: unknown }> = {
    "by another holder": {
      asked: { token: "t1", holder: caller("other") },
      outcome: { kind: "otherHolder", holder: caller("flyte") },
    },
    "of another project": {
      asked: { token: "t1", project: "speech" },
      outcome: { kind: "otherScope", project: "vision", namespace: "team" },
    },
    "of another namespace": {
      asked: { token: "t1", project: "vision", namespace: "tea" },
      outcome: { kind: "otherScope", project: "vision", namespace: "team" },
    },
    "by another fence": { asked: { token: "t1", fence: 1n }, outcome: { kind: "notHeld" } },
    "of another token": { asked: { token: "t" }, outcome: { kind: "notHeld" } },
  };
  for (const [name, { asked, outcome }] of Object.entries(refused)) {
    test(`a release ${name} changes nothing`, async () => {
      await commit(grant([allocation()]));
      assert.deepEqual(await ledgerAt(store, NOW).release([releaseOf(asked)]), [outcome]);
      assert.equal(await used(pool), 1);
    });
  }

  test("released tokens are listed for the counters until they confirm them", async () => {
    const made = grant([allocation({ token: "a" }), allocation({ token: "b" })]);
    await commit(made);
    await ledgerAt(store, NOW).release([releaseOf({ token: "b" }), releaseOf({ token: "a" })]);
    const refs = ["a", "b"].map((token) => ({ pool: POOL, token, fence: made.fence }));
    assert.deepEqual(await ledgerAt(store).unconfirmedReleases(9), refs);
    assert.deepEqual(await ledgerAt(store, 0, "elsewhere").unconfirmedReleases(9), []);
    await ledgerAt(store).confirmReleases(refs.slice(0, 1));
    assert.deepEqual(await ledgerAt(store).unconfirmedReleases(9), refs.slice(1));
    await ledgerAt(store).raiseEpoch(null);
    assert.deepEqual(await ledgerAt(store).unconfirmedReleases(9), []);
  });

  test("a voided grant can never be committed; a recorded one is reported as live or gone", async () => {
    const [phantom, live, released] = ["p", "l", "r"].map((token) => grant([allocation({ token })]));
    assert.ok(phantom && live && released);
    await commit(live, released);
    await ledgerAt(store, NOW).release([releaseOf({ token: "r" })]);
    const tokens = [phantom, live, released].flatMap(held);
    assert.deepEqual(await ledgerAt(store, NOW).voidGrants(tokens), ["voided", "live", "gone"]);
    assert.deepEqual(await ledgerAt(store, NOW).voidGrants(tokens), ["voided", "live", "gone"]);
    assert.deepEqual(await kinds(phantom), ["gone"]);
    assert.equal(await used(pool), 1);
    assert.deepEqual(await kinds(grant([allocation({ token: "p" })])), ["committed"]);
    const unconfirmed = await ledgerAt(store).unconfirmedReleases(9);
    assert.deepEqual(
      unconfirmed.map(({ token }) => token),
      ["p", "r"],
    );
  });

  test("a void of one allocation makes the whole grant impossible to commit", async () => {
    const phantom = grant([allocation({ token: "a" }), allocation({ token: "b" })]);
    assert.deepEqual(await ledgerAt(store, NOW).voidGrants(held(phantom).slice(0, 1)), ["voided"]);
    assert.deepEqual(await kinds(phantom), ["gone"]);
    assert.deepEqual(await ledgerAt(store).findLive([{ pool: POOL, token: "b" }]), []);
  });

  test("confirmed releases are forgotten after a day, and no request of that age can be committed", async () => {
    const dayMs = 86_400_000;
    const [late, old, young, open] = ["late", "old", "young", "open"].map((token) => grant([allocation({ token })]));
    assert.ok(late && old && young && open);
    await commit(old, young, open);
    await ledgerAt(store, NOW - dayMs - 1).release([releaseOf({ token: "old" }), releaseOf({ token: "open" })]);
    await ledgerAt(store, NOW - dayMs).release([releaseOf({ token: "young" })]);
    const ref = ({ allocations: [first], fence }: LedgerGrant) => ({ pool: POOL, token: first?.token ?? "", fence });
    await ledgerAt(store).confirmReleases([ref(old), ref(young)]);
    assert.deepEqual([await ledgerAt(store, NOW).pruneReleases(), await ledgerAt(store, NOW).pruneReleases()], [1, 0]);
    const rows = await db.query<{ token: string }>("select token from allocations order by token");
    assert.deepEqual(
      rows.map(({ token }) => token),
      ["open", "young"],
    );
    assert.deepEqual(await kinds(old, late, young), ["gone", "gone", "gone"]);
  });

  test("a lowered quota blocks new grants until use falls below it, and takes nothing away", async () => {
    await commit(grant([allocation({ token: "a", amount: 6 })]));
    await store.pools.register(poolChange({ quota: 3 }), { version: 0, actor: "admin" });
    assert.equal(await used(pool), 6);
    const [outcome] = await commit(grant([allocation({ token: "b" })]));
    assert.ok(outcome?.kind === "over");
    assert.deepEqual([outcome.violation.used, outcome.violation.limit], [6, 3]);
    await ledgerAt(store, NOW).release([releaseOf({ token: "a" })]);
    assert.deepEqual(await kinds(grant([allocation({ token: "b", amount: 3 })])), ["committed"]);
  });

  /** Creates two queues below `all`. Each guarantees itself the part that it does not lend. */
  async function tree() {
    const strategy = "BEST_EFFORT_FIFO" as const;
    const root = [{ flavor: POOL, resource: "slots", nominal: 0 }];
    assert.equal((await store.admin.createQueue({ name: "all", strategy, quotas: root })).kind, "done");
    for (const name of ["left", "right"]) {
      const quotas = [{ flavor: POOL, resource: "slots", nominal: 4, borrowingLimit: 3, lendingLimit: 3 }];
      assert.equal((await store.admin.createQueue({ name, parent: "all", strategy, quotas })).kind, "done");
    }
  }

  test("a queue borrows the tokens that others lend, up to its borrowing limit, and returns them", async () => {
    await tree();
    const of = (token: string, queue: string, amount: number) => grant([allocation({ token, queue, amount })]);
    assert.deepEqual(await kinds(of("a", "left", 8)), ["over"], "the limit is nominal 4 plus borrowing 3");
    assert.deepEqual(await kinds(of("a", "left", 7)), ["committed"], "the lent parts are 3 and 3");
    assert.equal(await used({ kind: "queue", pool: POOL, queue: "all" }), 6);
    const shown = await store.admin.listQueues();
    const uses = shown.map(({ name, used: of }) => [name, of[POOL]]);
    assert.deepEqual(uses, [
      ["all", 6],
      ["left", 7],
      ["research", undefined],
      ["right", undefined],
    ]);
    const [outcome] = await commit(of("b", "right", 2));
    assert.deepEqual(outcome?.kind === "over" && outcome.violation.scope, { kind: "queue", pool: POOL, queue: "all" });
    assert.deepEqual(await kinds(of("b", "right", 1)), ["committed"], "the guarantee is not lent");
    await ledgerAt(store, NOW).release([releaseOf({ token: "a" })]);
    assert.equal(await used({ kind: "queue", pool: POOL, queue: "all" }), 0);
    assert.deepEqual(await kinds(of("c", "right", 6)), ["committed"]);
    assert.equal(await agrees(store), true);
  });

  test("a job's admission is also limited by the pool's quota and the project's default", async () => {
    await store.pools.register(poolChange({ name: FLAVOR, projectDefault: 3 }), { version: 0, actor: "admin" });
    const plannerEpoch = await takePlannerLease(store, "p1");
    const admit = async (amount: number) => {
      const job = newJob();
      await store.intake.createJob({ job, sent: sentOf(job), requestId: "" });
      const planned = plannedFor(job);
      const { allocations, fence } = grant([
        allocation({ pool: FLAVOR, token: job.uid, amount, queue: "research", leaseMs: null }),
      ]);
      return recordOne(store, {
        planned,
        allocations,
        fence,
        quotaEpoch: epoch,
        plannerEpoch,
        nowMs: NOW,
      });
    };
    assert.equal(await admit(4), "refusedByLedger");
    assert.equal(await admit(3), "recorded");
  });

  async function admitted(changes: Parameters<typeof newJob>[0] = {}) {
    const plannerEpoch = await takePlannerLease(store, "p1");
    const job = newJob(changes);
    await store.intake.createJob({ job, sent: sentOf(job), requestId: "" });
    const { allocations, fence } = grant([
      allocation({ pool: FLAVOR, token: job.uid, amount: 4, queue: "research", leaseMs: null }),
    ]);
    const record = { planned: plannedFor(job), allocations, fence, quotaEpoch: epoch, plannerEpoch, nowMs: NOW };
    assert.equal(await recordOne(store, record), "recorded");
    return job;
  }

  test("a forced release is audited with actor and reason, and refuses to end a job's live admission", async () => {
    await commit(grant([allocation()]));
    const job = await admitted();
    const by = { reason: "stuck", actor: "oncall" };
    assert.deepEqual(await store.pools.forceRelease({ pool: FLAVOR, token: job.uid, ...by }), {
      kind: "liveAdmission",
      job: `${job.namespace}/${job.name}`,
      admission: 1,
    });
    assert.deepEqual(
      await ledgerAt(store, NOW).release([releaseOf({ pool: FLAVOR, token: job.uid, holder: null, reason: "forced" })]),
      [{ kind: "liveAdmission", jobUid: job.uid, admission: 1 }],
    );
    assert.equal((await store.pools.forceRelease({ pool: POOL, token: "t1", ...by })).kind, "released");
    assert.equal((await store.pools.forceRelease({ pool: POOL, token: "t1", ...by })).kind, "notHeld");
    const page = await store.pools.listAudit({
      filter: { actor: null, action: "ForceRelease", subject: null },
      pageSize: 9,
      after: null,
    });
    assert.ok(page !== "badCursor");
    assert.deepEqual(
      page.entries.map(({ actor, reason, subject, timeMs }) => [actor, reason, subject, timeMs]),
      [["oncall", "stuck", `${POOL}/t1`, NOW]],
    );
    await db.query("update admissions set state = 'undone'");
    assert.equal((await store.pools.forceRelease({ pool: FLAVOR, token: job.uid, ...by })).kind, "released");
  });

  test("a check finds wrong sums and rows without a holder, and a repair corrects both", async () => {
    await commit(grant([allocation({ amount: 4 })]));
    const job = await admitted();
    assert.deepEqual(await store.pools.check(null), { sums: [], orphans: [] });
    await db.query("update allocation_sums set used = 7 where pool = $1 and scope = 'namespace'", [POOL]);
    await db.query("delete from allocation_sums where pool = $1 and scope = 'project'", [POOL]);
    await db.query("update admissions set tokens_released_ms = 1");
    const found = await store.pools.check(null);
    assert.deepEqual(found.sums, [
      { scope: { kind: "namespace", pool: POOL, project: "vision", namespace: "team" }, recorded: 7, live: 4 },
      { scope: { kind: "project", pool: POOL, project: "vision" }, recorded: 0, live: 4 },
    ]);
    assert.deepEqual(
      found.orphans.map(({ token }) => token),
      [job.uid],
    );
    assert.deepEqual((await store.pools.check(FLAVOR)).sums, []);
    assert.deepEqual(await store.pools.repair(null), found);
    assert.deepEqual(await store.pools.check(null), { sums: [], orphans: [] });
    assert.equal(await used({ kind: "pool", pool: FLAVOR }), 0);
    assert.equal(await used(pool), 4);
  });

  test("a release and a raised epoch restore the sums that a program of the previous version left out", async () => {
    await commit(grant([allocation({ token: "a", amount: 2 })]), grant([allocation({ token: "b", amount: 3 })]));
    await db.query("update allocation_sums set used = 1 where scope = 'project'");
    await ledgerAt(store, NOW).release([releaseOf({ token: "a" })]);
    assert.equal(await agrees(store), true);
    await db.query("update allocation_sums set used = 0 where scope <> 'pool'");
    await ledgerAt(store).raiseEpoch(null);
    assert.equal(await agrees(store), true);
    assert.equal(await used({ kind: "project", pool: POOL, project: "vision" }), 3);
  });

  test("constraints: a token has one holder, a job's token no lease, and a reason needs a release", async () => {
    const job = "01900000-0000-7000-8000-000000000000";
    const insert = (columns: string, values: string) =>
      db.query(
        `insert into allocations (pool, token, project, namespace, amount, fence, granted_ms, ${columns})
         values ('${POOL}', 'x', 'p', 'n', 1, 1, 0, ${values})`,
      );
    await assert.rejects(insert("queue", "null"), /allocations_holder/);
    await assert.rejects(insert("job_uid, admission, caller", `'${job}', 1, 'c'`), /allocations_holder/);
    await assert.rejects(insert("job_uid", `'${job}'`), /allocations_holder/);
    await assert.rejects(insert("job_uid, admission, lease_ms", `'${job}', 1, 5`), /allocations_lease/);
    await assert.rejects(insert("caller, release_reason", "'c', 'forced'"), /allocations_reason/);
    await insert("caller", "'c'");
    await assert.rejects(insert("caller, released_ms", "'c', 5"), /allocations_grant/);
  });
});
