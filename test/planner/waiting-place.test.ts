import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { inProcessCounters } from "../../src/adapters/counters/in-process/in-process-counters.ts";
import type { Job } from "../../src/core/job/job.ts";
import type { Allocation, AllocationRef, GrantOutcome } from "../../src/core/quota/counters.ts";
import { createPlanner } from "../../src/planner/planner.ts";
import { type Clock, systemClock } from "../../src/runtime/clock.ts";
import { plannerQuota } from "../../src/tokens/planner-quota.ts";
import { cluster, job, nodes, pool, queue } from "../core/plan/plan-world.ts";
import { waitUntil } from "../support/bounded.ts";
import { fleetPlanner } from "../support/fleet-planner.ts";
import { soleDomain } from "../support/sole-quota.ts";
import { MemoryStore } from "./memory-store.ts";

const POOL = "gpu/h100";
const QUOTA = 16;

/** A gang of some pods with 8 GPUs each. */
const gang = (name: string, replicas: number, parts: Partial<Parameters<typeof job>[0]> = {}) =>
  job({ name, roles: { Worker: { replicas, gpus: 8 } }, ...parts });

function allocationOf(token: string, amount: number): Allocation {
  const caps = { project: null, namespace: null };
  return { pool: POOL, token, amount, project: "etl", namespace: "etl", queue: null, caps, leaseMs: null };
}

const ann = { kind: "caller", name: "ann" } as const;

/** A pool of 16 that gangs and callers share; queues and clusters have room for more. */
function start(jobs: readonly Job[], clock: Clock = systemClock()) {
  const store = new MemoryStore({
    jobs,
    clusters: [cluster("east", { nodes: nodes(8, "h100") })],
    queues: [queue("q", { h100: 64 })],
    pools: [pool(POOL, { quota: QUOTA })],
  });
  const counters = inProcessCounters();
  const domain = soleDomain({ clock, ledger: store.ledger, counters });
  const lease = { epoch: () => store.plannerEpoch };
  const ports = {
    clock,
    store,
    fleet: fleetPlanner(store),
    quota: plannerQuota(domain),
    lease,
    wakeJob: () => undefined,
  };
  const errors: unknown[] = [];
  const planner = createPlanner(ports, { onError: (error) => void errors.push(error) });
  const held = new Map<string, AllocationRef>();

  /** Allocates as a caller's request does: counters, ledger, answer. */
  async function allocate(token: string, amount: number, priority = 0): Promise<GrantOutcome> {
    const epoch = await domain.epochs.openEpoch(1_000);
    const allocations = [allocationOf(token, amount)];
    const outcome = await counters.grant({ epoch, holder: ann, allocations, priority, waiter: null });
    if (outcome.kind === "granted") await makeGood(token, amount, outcome.fence);
    return outcome;
  }

  async function makeGood(token: string, amount: number, fence: bigint): Promise<void> {
    const epoch = await domain.epochs.openEpoch(1_000);
    const committed = store.tokens.commitOne(epoch, { allocations: [allocationOf(token, amount)], holder: ann, fence });
    assert.equal(committed.kind, "committed");
    const ref = { pool: POOL, token, fence };
    held.set(token, ref);
    await counters.confirm(epoch, [ref]);
  }

  async function release(token: string): Promise<void> {
    const ref = held.get(token);
    assert.ok(ref);
    held.delete(token);
    const any = { holder: null, project: null, namespace: null };
    await store.tokens.release([{ ...ref, ...any, reason: "released" }]);
    await counters.free(await domain.epochs.openEpoch(1_000), [ref]);
  }

  const used = async () => {
    const sums = await counters.used();
    return sums.find(({ scope }) => scope.kind === "pool")?.used ?? 0;
  };
  const waiters = async () => (await counters.waiting()).map(({ waiter }) => waiter);
  return { store, counters, domain, planner, errors, held, allocate, makeGood, release, used, waiters };
}

const admitted = (store: MemoryStore) =>
  [...store.jobs.values()].filter((one) => one.admissions.length > 0).map((one) => one.name);

test("callers that request little do not starve a gang that requests much", async () => {
  const { store, planner, allocate, release, waiters } = start([gang("big", 2)]);
  assert.equal((await allocate("t1", 4)).kind, "granted");
  assert.equal((await allocate("t2", 4)).kind, "granted");
  const round = await planner.runOnce();
  assert.deepEqual([round?.admitted, round?.missed, await waiters()], [0, 0, ["gang/uid-big/1"]]);
  const refusal = store.refusals.get("uid-big");
  assert.equal(
    refusal?.message,
    "needs 16 of gpu/h100; pool gpu/h100 uses 8 of 16 (held by caller ann); it is in the waiting line of gpu/h100",
  );
  await release("t1");
  const refused = await allocate("t3", 4);
  assert.ok(refused.kind === "exhausted");
  assert.equal(refused.violation.reservedForHead, 16);
  assert.equal((await allocate("urgent", 4, 1)).kind, "granted", "priority goes first");
  await planner.runOnce();
  await release("t2");
  await release("urgent");
  assert.equal((await planner.runOnce())?.admitted, 1);
  assert.deepEqual(await waiters(), [], "an admitted gang leaves the line");
  assert.equal(store.tokens.epoch, 1);
});

test("gangs that come later do not starve a caller that waits", async () => {
  const { store, counters, domain, planner, makeGood, waiters } = start([
    gang("a", 1),
    gang("b", 1),
    gang("c", 1, { createTimeMs: 9 }),
  ]);
  await planner.runOnce();
  assert.deepEqual(admitted(store), ["a", "b"]);
  assert.deepEqual(await waiters(), ["gang/uid-c/1"]);
  const epoch = await domain.epochs.openEpoch(1_000);
  const allocations = [allocationOf("t", 8)];
  const stand = { epoch, waiter: "w", holder: ann, allocations, priority: 0, sinceMs: 5, grants: true };
  assert.equal((await counters.stand(stand)).kind, "waiting");
  store.finish("uid-a");
  await planner.runOnce();
  const granted = await counters.stand(stand);
  assert.ok(granted.kind === "granted", "it stood before the gang");
  await makeGood("t", 8, granted.fence);
  store.finish("uid-b");
  await planner.runOnce();
  assert.deepEqual(admitted(store), ["c"]);
  assert.equal(store.tokens.epoch, 1, "nobody distrusted the counters");
});

test("a gang waits for tokens that the ledger does not know yet, and the counters stay trusted", async () => {
  const { store, counters, domain, planner, waiters } = start([gang("a", 2), gang("b", 1)]);
  const epoch = await domain.epochs.openEpoch(1_000);
  const asking = { epoch, holder: ann, allocations: [allocationOf("t", 2)], priority: 0, waiter: null };
  const granted = await counters.grant(asking);
  assert.ok(granted.kind === "granted");
  const round = await planner.runOnce();
  assert.deepEqual([round?.admitted, round?.missed, round?.refused], [0, 0, 2]);
  assert.deepEqual(await waiters(), ["gang/uid-a/1"], "the plan has room for it, and it comes before b");
  assert.match(store.refusals.get("uid-a")?.message ?? "", /uses 2 of 16; it is in the waiting line of gpu\/h100$/);
  await counters.free(epoch, [{ pool: POOL, token: "t", fence: granted.fence }]);
  assert.equal((await planner.runOnce())?.admitted, 1);
  assert.deepEqual([admitted(store), store.tokens.epoch], [["a"], 1]);
});

test("a gang that is older than a waiting caller is admitted before it, in the same round", async () => {
  const { store, counters, domain, planner, allocate } = start([gang("a", 1)]);
  await allocate("t", 4);
  const epoch = await domain.epochs.openEpoch(1_000);
  const allocations = [allocationOf("large", 13)];
  const stand = { epoch, waiter: "w", holder: ann, allocations, priority: 0, sinceMs: 5, grants: true };
  assert.equal((await counters.stand(stand)).kind, "waiting");
  assert.equal((await planner.runOnce())?.admitted, 1);
  assert.deepEqual(admitted(store), ["a"]);
});

test("the place is for the first gang: an earlier gang takes it over, and a gang that is gone leaves it", async () => {
  const { store, planner, allocate, release, waiters } = start([gang("a", 2)]);
  await allocate("t", 12);
  await planner.runOnce();
  assert.deepEqual(await waiters(), ["gang/uid-a/1"]);
  store.jobs.set("uid-b", gang("b", 1, { priority: 1 }));
  await planner.runOnce();
  assert.deepEqual(await waiters(), ["gang/uid-b/1"]);
  assert.equal(store.refusals.get("uid-a")?.message.includes("in the waiting line"), false);
  store.jobs.delete("uid-b");
  await planner.runOnce();
  assert.deepEqual(await waiters(), ["gang/uid-a/1"]);
  store.jobs.delete("uid-a");
  await planner.runOnce();
  assert.deepEqual(await waiters(), []);
  await release("t");
});

test("the planner's own place does not hold up a gang that comes before it", async () => {
  const { store, planner, allocate, waiters } = start([gang("a", 2)]);
  await allocate("t", 8);
  await planner.runOnce();
  assert.deepEqual(await waiters(), ["gang/uid-a/1"]);
  // Of the same priority, and older: it comes first, and there is room for it.
  store.jobs.set("uid-b", gang("b", 1, { createTimeMs: -1 }));
  const round = await planner.runOnce();
  assert.deepEqual([round?.admitted, admitted(store)], [1, ["b"]]);
  assert.deepEqual(await waiters(), ["gang/uid-a/1"]);
});

test("a gang that passes another leaves room for it, unless its priority is higher", async () => {
  const { store, planner, allocate } = start([gang("a", 2), gang("b", 1)]);
  await allocate("t", 8);
  await planner.runOnce();
  assert.deepEqual(admitted(store), []);
  const refusal = store.refusals.get("uid-b");
  assert.equal(refusal?.reason, "Reserved");
  assert.equal(refusal?.message, "needs 8 of gpu/h100; pool gpu/h100 uses 8 of 16, and keeps 16 for ml/a");
});

test("an offer for its gang wakes the planner", async (t) => {
  const real = systemClock();
  /** Nothing comes by waiting alone. */
  const patient: Clock = {
    ...real,
    sleep: (ms, signal) => real.sleep(ms > 300 ? 60_000 : ms, signal),
  };
  const { store, planner, allocate, release, waiters } = start([gang("a", 2)], patient);
  await allocate("t", 1);
  const stop = new AbortController();
  t.after(() => stop.abort());
  const ended = planner.run(stop.signal);
  const isWaiting = async () => (await waiters()).length > 0 && store.refusals.size > 0;
  await waitUntil("the gang waits", isWaiting, { pollMs: 1 });
  await release("t");
  await waitUntil("the gang is admitted", () => admitted(store).length > 0, { pollMs: 1 });
  stop.abort();
  await ended;
});

test("no limit is exceeded, at most one gang is in the line, and all callers and gangs get their turn", async () => {
  const step = fc.oneof(
    fc.record({ do: fc.constant("allocate" as const), amount: fc.integer({ min: 1, max: 16 }), priority: fc.nat(1) }),
    fc.record({ do: fc.constant("release" as const), at: fc.nat(9) }),
    fc.record({ do: fc.constant("submit" as const), replicas: fc.integer({ min: 1, max: 2 }), priority: fc.nat(1) }),
    fc.record({ do: fc.constant("finish" as const), at: fc.nat(9) }),
    fc.record({ do: fc.constant("round" as const) }),
  );
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 30, size: "max" }), async (steps) => {
      const { store, counters, planner, held, allocate, release, used, waiters } = start([]);
      let count = 0;
      const admitted = new Set<string>();
      const finish = (at: number) => {
        const running = [...store.jobs.values()].filter((one) => one.admissions.length > 0);
        const one = running[at % Math.max(1, running.length)];
        if (one !== undefined) store.finish(one.uid);
      };
      const round = async () => {
        await planner.runOnce();
        for (const one of store.jobs.values()) if (one.admissions.length > 0) admitted.add(one.uid);
      };
      for (const one of steps) {
        count += 1;
        if (one.do === "allocate") await allocate(`t${count}`, one.amount, one.priority);
        if (one.do === "release" && held.size > 0) await release([...held.keys()][one.at % held.size] ?? "");
        if (one.do === "submit") {
          const { replicas, priority } = one;
          store.jobs.set(`uid-${count}`, gang(String(count), replicas, { priority, createTimeMs: count }));
        }
        if (one.do === "finish") finish(one.at);
        if (one.do === "round") await round();
        assert.ok((await used()) <= QUOTA);
        assert.ok((await waiters()).filter((waiter) => waiter.startsWith("gang/")).length <= 1);
      }
      const submitted = [...store.jobs.keys()];
      await round();
      // A caller comes before each release, and asks for what it frees: the first in the line is not passed.
      for (let left = 2 * (submitted.length + held.size) + 2; left > 0; left -= 1) {
        const first = [...held.keys()][0];
        if (first !== undefined) await release(first);
        finish(0);
        await round();
        if (store.jobs.size > 0) await allocate(`late${left}`, 1);
      }
      for (const uid of submitted) assert.ok(admitted.has(uid), `${uid} admitted`);
      for (const token of [...held.keys()]) await release(token);
      finish(0);
      await round();
      assert.equal(store.tokens.epoch, 1);
      assert.deepEqual(await waiters(), []);
      assert.equal(
        await used(),
        store.tokens.live.reduce((sum, row) => sum + row.amount, 0),
      );
      assert.deepEqual(await counters.waiting(), []);
    }),
    { numRuns: 200 },
  );
});
