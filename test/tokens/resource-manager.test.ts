import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";
import { AMOUNT_MAX } from "../../src/core/quota/allocations.ts";
import type { AllocateAnswer, RequestedAllocation } from "../../src/core/quota/calls.ts";
import { systemClock } from "../../src/runtime/clock.ts";
import type { TestStore } from "../store/db.ts";
import { FLAVOR } from "../store/jobs.ts";
import { ledgerAt } from "../support/ledger-at.ts";
import { onEachManager } from "./each-manager.ts";
import { allocation, NO_WISHES, POOL, renewals, startManager, type TestManager } from "./manager.ts";

type Wishes = Partial<Parameters<TestManager["manager"]["registerPool"]>[0]>;

const granted = (answer: AllocateAnswer) => {
  assert.ok(answer.kind === "granted", JSON.stringify(answer.kind));
  return answer;
};
const release = { token: "t1", pool: POOL, holder: "flyte", project: null, namespace: null };
const asked = (ms: number): RequestedAllocation["lease"] => ({ kind: "asked", ms });

onEachManager((start) => {
  let store: TestStore;
  let at: TestManager;
  beforeEach(async () => {
    ({ at, store } = await start());
    await register({ quota: 10 });
  });
  const register = async (wishes: Wishes, version = 0) => {
    const answer = await at.manager.registerPool({ name: POOL, ...NO_WISHES, ...wishes }, version, "admin");
    return answer;
  };
  const allocate = (allocations: Parameters<typeof allocation>[0][], holder = "flyte") =>
    at.manager.allocate({ allocations: allocations.map(allocation), holder, priority: 0 });

  test("a token is granted once; its holder gets the same fence again", async () => {
    const first = granted(await allocate([{ amount: 4 }]));
    const again = granted(await allocate([{ amount: 4 }]));
    assert.deepEqual([first.held, again.held, again.fence], [false, true, first.fence]);
    assert.equal((await at.manager.getPool(POOL))?.used, 4);
  });

  test("several servers see the same tokens", async () => {
    const { fence } = granted(await allocate([{}]));
    const counters = (await at.domain()).counters;
    const other = startManager({
      ledgerOf: store.ledgerOf,
      store: store.pools,
      clock: systemClock(),
      countersOf: async () => counters,
    });
    await (await other.domain()).epochs.openEpoch(5_000);
    const again = granted(await other.manager.allocate({ allocations: [allocation()], holder: "flyte", priority: 0 }));
    assert.deepEqual([again.held, again.fence], [true, fence]);
    assert.deepEqual(await other.manager.release([release]), [{ kind: "released", fence }]);
    assert.deepEqual(await at.manager.release([release]), [{ kind: "notHeld" }]);
    await other.close();
  });

  test("a full pool refuses a request with its use and its limit", async () => {
    await allocate([{ amount: 8 }]);
    const answer = await allocate([{ token: "a" }, { token: "b", amount: 2 }]);
    assert.deepEqual(answer, {
      kind: "exhausted",
      index: 1,
      violation: { scope: { kind: "pool", pool: POOL }, used: 9, limit: 10, requested: 2, reservedForHead: 0 },
    });
    assert.equal((await at.manager.getPool(POOL))?.tokens, 1);
  });

  test("a quota that was set is lifted, and set again", async () => {
    granted(await allocate([{ token: "a", amount: 10 }]));
    assert.equal((await allocate([{ token: "b", amount: 1 }])).kind, "exhausted");
    await register({ quota: AMOUNT_MAX });
    assert.equal((await at.manager.getPool(POOL))?.quota, null);
    granted(await allocate([{ token: "b", amount: 1_000_000 }]));
    await register({ quota: 12 });
    assert.equal((await at.manager.getPool(POOL))?.quota, 12);
    assert.equal((await allocate([{ token: "c", amount: 1 }])).kind, "exhausted");
  });

  test("the tighter of a request's cap and the pool's default counts; a cap of 0 admits nothing", async () => {
    await register({ projectDefault: 3, namespaceDefault: 2 });
    const tries = [
      { amount: 3, caps: { project: null, namespace: null } },
      { amount: 2, caps: { project: 1, namespace: null } },
      { amount: 1, caps: { project: null, namespace: 0 } },
    ];
    const scopes = [];
    for (const one of tries) {
      const answer = await allocate([one]);
      assert.equal(answer.kind, "namespaceQuotaExceeded");
      if (answer.kind === "namespaceQuotaExceeded") scopes.push([answer.violation.scope.kind, answer.violation.limit]);
    }
    assert.deepEqual(scopes, [
      ["namespace", 2],
      ["project", 1],
      ["namespace", 0],
    ]);
    await register({ projectDefault: AMOUNT_MAX, namespaceDefault: AMOUNT_MAX });
    granted(await allocate([{ amount: 10 }]));
  });

  test("a token held by another holder or with another amount is refused", async () => {
    const { fence } = granted(await allocate([{ amount: 2 }]));
    const held = { kind: "heldOtherwise", pool: POOL, token: "t1", holder: "flyte", amount: 2, fence };
    assert.deepEqual(await allocate([{ amount: 2 }], "argo"), held);
    assert.deepEqual(await allocate([{ amount: 3 }]), held);
    assert.deepEqual(await allocate([{ amount: 2 }, { token: "t2" }]), held);
    assert.deepEqual(await at.manager.release([{ ...release, holder: "argo" }]), [{ kind: "otherHolder" }]);
    assert.deepEqual(await at.manager.release([{ ...release, namespace: "other" }]), [
      { kind: "otherScope", project: "vision", namespace: "team" },
    ]);
  });

  test("the pools and queues of a request must exist and be counted together", async () => {
    assert.deepEqual(await allocate([{}, { pool: "ex:nothing" }]), {
      kind: "unknownPool",
      name: "ex:nothing",
      index: 1,
    });
    assert.deepEqual(await allocate([{ queue: "nobody" }]), { kind: "unknownQueue", name: "nobody", index: 0 });
    await register({ name: "ex:apart", quota: 1, domain: "elsewhere" });
    assert.deepEqual(await allocate([{}, { pool: "ex:apart" }]), { kind: "apart", pools: [POOL, "ex:apart"] });
    await register({ maxLeaseMs: 60_000 });
    assert.deepEqual(await allocate([{ lease: asked(60_001) }]), {
      kind: "leaseTooLong",
      index: 0,
      maxLeaseMs: 60_000,
    });
    const unknown = [{ kind: "unknownPool" }];
    assert.deepEqual(await at.manager.release([{ ...release, pool: "ex:nothing" }]), unknown);
    assert.deepEqual(
      await at.manager.renew({ holder: "f", tokens: [{ pool: "ex:nothing", token: "t" }], leaseMs: null }),
      unknown,
    );
  });

  test("a queue is charged and limited by its ceiling", async () => {
    const of = (token: string, amount: number) => allocate([{ pool: FLAVOR, token, amount, queue: "research" }]);
    granted(await of("a", 8));
    const answer = await of("b", 1);
    assert.ok(answer.kind === "exhausted");
    assert.deepEqual(answer.violation.scope, { kind: "queue", pool: FLAVOR, queue: "research" });
    assert.deepEqual((await store.admin.getQueue("research"))?.used, { [FLAVOR]: 8 });
  });

  test("a request with a queue is refused for a pool that is counted apart from queues", async () => {
    await store.admin.ensureQueue({ name: "research", strategy: "BEST_EFFORT_FIFO", quotas: [] });
    await register({ name: "ex:apart", quota: 1, domain: "elsewhere" });
    await register({ name: "ex:fast", quota: 1, durability: "REDIS" });
    for (const pool of ["ex:apart", "ex:fast"]) {
      assert.deepEqual(await allocate([{ pool, queue: "research" }]), { kind: "queueApart", pool, queue: "research" });
      granted(await allocate([{ pool }]));
    }
  });

  test("domains are counted separately, each with its own fences", async () => {
    await register({ name: "ex:apart", quota: 1, domain: "elsewhere" });
    granted(await allocate([{ pool: "ex:apart" }]));
    granted(await allocate([{}]));
    assert.equal((await allocate([{ pool: "ex:apart", token: "t2" }])).kind, "exhausted");
  });

  test("a limit below use takes nothing away and grants nothing new; a raised one grants at once", async () => {
    granted(await allocate([{ amount: 6 }]));
    await register({ quota: 4 });
    assert.equal((await allocate([{ token: "t2" }])).kind, "exhausted");
    assert.equal((await at.manager.getPool(POOL))?.used, 6);
    await register({ quota: 7 });
    granted(await allocate([{ token: "t2" }]));
  });

  test("tokens of durability REDIS are listed in pages from valid cursors, without a filter by age", async () => {
    await register({ name: "ex:fast", quota: 900, durability: "REDIS" });
    const tokens = Array.from({ length: 900 }, (_, at) => `t${at}`);
    granted(await allocate(tokens.map((token) => ({ pool: "ex:fast", token }))));
    const filter = { pool: "ex:fast", project: null, namespace: null, holder: null, olderThanMs: null };
    const seen = new Set<string>();
    for (let after: string | null = null; ; ) {
      const page = await at.manager.listAllocations({ filter, pageSize: 100, after });
      assert.ok(typeof page === "object");
      for (const { token } of page.allocations) seen.add(token);
      after = page.next;
      if (after === null) break;
    }
    assert.equal(seen.size, 900);
    const held = (text: string) => Buffer.from(`held ${text}`).toString("base64url");
    for (const after of ["garbage", "0", "-5", held("x"), held("-1"), held("18446744073709551616")]) {
      assert.equal(await at.manager.listAllocations({ filter, pageSize: 9, after }), "badCursor", after);
    }
    const old = { ...filter, olderThanMs: 0 };
    assert.equal(await at.manager.listAllocations({ filter: old, pageSize: 9, after: null }), "noGrantTimes");
  });

  test("a pool of durability REDIS is counted only by its counters", async () => {
    await register({ name: "ex:fast", quota: 2, durability: "REDIS", defaultLeaseMs: 0 });
    const { fence, allocations } = granted(await allocate([{ pool: "ex:fast", amount: 2 }]));
    assert.equal(allocations[0]?.expireTimeMs, null);
    assert.equal((await allocate([{ pool: "ex:fast", token: "t2" }])).kind, "exhausted");
    const held = await allocate([{ pool: "ex:fast", amount: 1 }], "argo");
    assert.ok(held.kind === "heldOtherwise");
    assert.deepEqual([held.holder, held.amount, held.fence], ["flyte", 2, fence]);
    const pool = await at.manager.getPool("ex:fast");
    assert.deepEqual([pool?.used, pool?.tokens], [2, 1]);
    const filter = { pool: "ex:fast", project: null, namespace: null, holder: null, olderThanMs: null };
    const listed = await at.manager.listAllocations({ filter, pageSize: 10, after: null });
    assert.ok(typeof listed === "object");
    assert.deepEqual(
      listed.allocations.map((one) => [one.token, one.holder]),
      [["t1", "flyte"]],
    );
    assert.deepEqual(await at.manager.release([{ ...release, pool: "ex:fast", project: "other" }]), [
      { kind: "otherScope", project: "vision", namespace: "team" },
    ]);
    assert.deepEqual(await at.manager.release([{ ...release, pool: "ex:fast" }]), [{ kind: "released", fence }]);
    assert.equal((await at.manager.getPool("ex:fast"))?.used, 0);
    assert.deepEqual(await store.pools.check(null), { sums: [], orphans: [] });
  });

  test("a lease is shown, renewed and listed", async () => {
    const startMs = Date.now();
    const { allocations } = granted(await allocate([{ lease: asked(30_000) }]));
    assert.ok((allocations[0]?.expireTimeMs ?? 0) >= startMs + 30_000);
    const [renewed, missing] = await renewals(at, { tokens: ["t1", "t2"], leaseMs: 90_000 });
    assert.ok(renewed?.kind === "renewed" && (renewed.expireTimeMs ?? 0) >= startMs + 90_000);
    assert.deepEqual(missing, { kind: "lost" });
    const [others] = await renewals(at, { holder: "argo" });
    assert.deepEqual(others, { kind: "otherHolder" });
    const page = await at.manager.listAllocations({
      filter: { pool: null, project: null, namespace: null, holder: "flyte", olderThanMs: null },
      pageSize: 10,
      after: null,
    });
    assert.ok(typeof page === "object");
    assert.ok((page.allocations[0]?.expireTimeMs ?? 0) > startMs + 60_000);
  });

  test("a forced release is audited, and the holder loses the token", async () => {
    granted(await allocate([{ amount: 10 }]));
    const forced = { pool: POOL, token: "t1", reason: "stuck", actor: "admin" };
    assert.deepEqual(await at.manager.forceRelease(forced), { kind: "released" });
    assert.deepEqual(await at.manager.forceRelease(forced), { kind: "notHeld" });
    assert.deepEqual(await renewals(at), [{ kind: "lost" }]);
    granted(await allocate([{ token: "t2", amount: 10 }]));
    const audit = await at.manager.listAudit({
      pageSize: 5,
      after: null,
      filter: { action: "ForceRelease", actor: null, subject: null },
    });
    assert.ok(audit !== "badCursor");
    assert.deepEqual(
      audit.entries.map((entry) => [entry.subject, entry.reason]),
      [[`${POOL}/t1`, "stuck"]],
    );
  });

  test("reconciliation finds and repairs tokens that only the counters or only the ledger hold", async () => {
    granted(await allocate([{ amount: 2 }]));
    granted(await allocate([{ token: "t2", amount: 3 }]));
    const { counters, epochs } = await at.domain();
    const epoch = await epochs.openEpoch(5_000);
    // The counters lose one token and hold another that the ledger never had.
    const [held] = (await ledgerAt(store).findLive([{ pool: POOL, token: "t1" }])) ?? [];
    await counters.free(epoch, [{ pool: POOL, token: "t1", fence: held?.fence ?? 0n }]);
    const ghost = { ...allocation({ token: "ghost" }), leaseMs: null };
    const grant = await counters.grant({
      epoch,
      holder: { kind: "caller", name: "x" },
      allocations: [ghost],
      priority: 0,
      waiter: null,
    });
    assert.ok(grant.kind === "granted");
    await counters.confirm(epoch, [{ pool: POOL, token: "ghost", fence: grant.fence }]);
    const seen = await at.manager.reconcile({ pool: POOL, dryRun: true, actor: "admin" });
    assert.ok("differences" in seen);
    const kinds = (answer: typeof seen) => answer.differences.map((one) => `${one.kind} ${one.subject}`);
    assert.ok(kinds(seen).includes("ledgerOnly t1") && kinds(seen).includes("counterOnly ghost"), kinds(seen).join());
    assert.equal(seen.repaired, false);
    const repaired = await at.manager.reconcile({ pool: POOL, dryRun: false, actor: "admin" });
    assert.ok("differences" in repaired && repaired.repaired && repaired.epoch > epoch);
    const clean = await at.manager.reconcile({ pool: null, dryRun: true, actor: "admin" });
    assert.ok("differences" in clean);
    assert.deepEqual(clean.differences, []);
    assert.deepEqual(await at.manager.reconcile({ pool: "ex:no", dryRun: true, actor: "a" }), { kind: "unknownPool" });
  });

  test("a lost domain reopens by itself under a newer epoch with all its tokens", async () => {
    const { fence } = granted(await allocate([{ amount: 4 }]));
    const { epochs, counters } = await at.domain();
    const epoch = await epochs.openEpoch(5_000);
    await counters.open(epoch + 2, { rows: [], limits: await ledgerAt(store).readLimits() });
    await ledgerAt(store).raiseEpoch(null);
    const answers: string[] = [];
    for (let turn = 0; turn < 200 && answers.at(-1) !== "granted"; turn += 1) {
      await allocate([{ amount: 4 }]).then(
        (answer) => answers.push(answer.kind),
        (error: Error) => answers.push(error.name),
      );
      await epochs.openEpoch(50).catch(() => undefined);
    }
    assert.equal(granted(await allocate([{ amount: 4 }])).fence, fence);
    assert.ok(at.reported.some(({ event }) => event === "domainClosed"));
    assert.ok((await epochs.openEpoch(0)) > epoch);
  });

  test("an unacknowledged grant can be released, and its later commit is refused", async () => {
    const { epochs, counters } = await at.domain();
    const epoch = await epochs.openEpoch(5_000);
    const allocations = [{ ...allocation({ amount: 10 }), leaseMs: 60_000 }];
    const holder = { kind: "caller" as const, name: "flyte" };
    const phantom = await counters.grant({ epoch, holder, allocations, priority: 0, waiter: null });
    assert.ok(phantom.kind === "granted");
    assert.deepEqual(await at.manager.release([release]), [{ kind: "released", fence: phantom.fence }]);
    assert.deepEqual(await ledgerAt(store, Date.now()).commit(epoch, [{ allocations, holder, fence: phantom.fence }]), [
      { kind: "gone" },
    ]);
    granted(await allocate([{ token: "t2", amount: 10 }]));
  });
});
