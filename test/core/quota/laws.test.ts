import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { holderKey, tokenKey } from "../../../src/core/quota/allocations.ts";
import { CounterState } from "../../../src/core/quota/counter-state.ts";
import type {
  Allocation,
  GrantRequest,
  HeldToken,
  Limits,
  StandRequest,
  TurnOver,
} from "../../../src/core/quota/counters.ts";
import { STAND_LEASE_MS, TICK_MS_MAX } from "../../../src/core/quota/lease-clock.ts";
import { limitBook } from "../../../src/core/quota/limits.ts";
import { scopeKey } from "../../../src/core/quota/scopes.ts";
import * as some from "../../tokens/arbitraries.ts";
import { canonicalSums } from "../../tokens/sums.ts";

const EPOCH = 1;
const NO_CAPS = { project: null, namespace: null };
const ANN = { kind: "caller", name: "ann" } as const;
const NOT_WAITING = { priority: 0, waiter: null };

type Step =
  | ({ readonly verb: "grant" } & Omit<GrantRequest, "epoch">)
  | ({ readonly verb: "stand" } & Omit<StandRequest, "epoch">)
  | { readonly verb: "free"; readonly at: number }
  | { readonly verb: "shrink"; readonly at: number; readonly amount: number }
  | { readonly verb: "leave"; readonly waiter: string }
  | { readonly verb: "tick"; readonly elapsedMs: number; readonly unconfirmedMs: number; readonly limit: number }
  | { readonly verb: "report" };

const { holder, allocations, priority } = some;
const asking = fc.record({ holder, allocations, priority, waiter: fc.option(some.waiter) });
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 5, arbitrary: asking.map((of) => ({ verb: "grant" as const, ...of })) },
  { weight: 4, arbitrary: some.stand.map((of) => ({ verb: "stand" as const, ...of })) },
  { weight: 4, arbitrary: fc.nat(9).map((at) => ({ verb: "free" as const, at })) },
  { weight: 2, arbitrary: fc.record({ verb: fc.constant("shrink" as const), at: fc.nat(9), amount: some.rest }) },
  { weight: 1, arbitrary: some.waiter.map((waiter) => ({ verb: "leave" as const, waiter })) },
  { weight: 2, arbitrary: some.tick.map((of) => ({ verb: "tick" as const, ...of })) },
  { weight: 1, arbitrary: fc.constant({ verb: "report" as const }) },
);
const steps = fc.array(step, { maxLength: 30, size: "max" });

function opened(limits: Limits, offers: string[] = []): CounterState {
  const state = new CounterState((waiter) => void offers.push(waiter));
  state.open(EPOCH, { rows: [], limits });
  state.report(EPOCH);
  return state;
}

const heldIn = (state: CounterState) => state.held(null, 10_000).tokens;

function take(state: CounterState, step: Step): unknown {
  switch (step.verb) {
    case "grant":
      return state.grant({ ...step, epoch: EPOCH });
    case "stand":
      return state.stand({ ...step, epoch: EPOCH });
    case "free": {
      const held = heldIn(state);
      const token = held[step.at % Math.max(1, held.length)];
      return state.free(EPOCH, token === undefined ? [] : [token]);
    }
    case "shrink": {
      const held = heldIn(state);
      const token = held[step.at % Math.max(1, held.length)];
      return state.shrink(EPOCH, token === undefined ? [] : [{ ...token, amount: step.amount }]);
    }
    case "leave":
      return state.leave(EPOCH, step.waiter);
    case "tick":
      return state.tick(EPOCH, step);
    case "report":
      return state.report(EPOCH);
  }
}

/**
 * Computes every scope's sum from the definition: a queue's sum counts the allocations that name it, plus the amounts
 * by which the queues below exceed their guarantees.
 */
function expectedSums(held: readonly HeldToken[], limits: Limits): Readonly<Record<string, number>> {
  const book = limitBook(limits);
  const sums = new Map<string, number>();
  const add = (key: string, amount: number) => sums.set(key, (sums.get(key) ?? 0) + amount);
  for (const { pool, project, namespace, amount } of held) {
    add(scopeKey({ kind: "pool", pool }), amount);
    add(scopeKey({ kind: "project", pool, project }), amount);
    add(scopeKey({ kind: "namespace", pool, project, namespace }), amount);
  }
  const parentOf = (queue: string, pool: string) => book.queue(queue, pool).parent;
  const queueSum = (queue: string, pool: string): number => {
    const own = held.filter((token) => token.queue === queue && token.pool === pool);
    const below = some.QUEUES.filter((child) => parentOf(child, pool) === queue);
    const direct = own.reduce((sum, token) => sum + token.amount, 0);
    return below.reduce((sum, child) => {
      return sum + Math.max(0, queueSum(child, pool) - book.queue(child, pool).guarantee);
    }, direct);
  };
  for (const queue of some.QUEUES) {
    for (const pool of some.POOLS) add(scopeKey({ kind: "queue", pool, queue }), queueSum(queue, pool));
  }
  return Object.fromEntries([...sums].filter(([, used]) => used > 0).sort(([a], [b]) => (a < b ? -1 : 1)));
}

function limitAt(key: string, limits: Limits): number {
  const [kind, pool = "", queue = ""] = JSON.parse(key) as string[];
  const book = limitBook(limits);
  const none = Number.MAX_SAFE_INTEGER;
  if (kind === "pool" && book.pool(pool).freeze !== undefined) return 0;
  if (kind === "queue" && book.queue(queue, pool).freeze !== undefined) return 0;
  if (kind === "pool") return book.pool(pool).quota ?? none;
  if (kind === "project") return book.pool(pool).projectDefault ?? none;
  if (kind === "namespace") return book.pool(pool).namespaceDefault ?? none;
  return book.queue(queue, pool).ceiling;
}

test("after any steps, sums equal the held allocations, and no scope exceeds its limit", () => {
  fc.assert(
    fc.property(some.limits, steps, (limits, taken) => {
      const state = opened(limits);
      for (const one of taken) {
        take(state, one);
        const sums = canonicalSums(state.used());
        assert.deepEqual(sums, expectedSums(heldIn(state), limits));
        for (const [key, used] of Object.entries(sums)) assert.ok(used <= limitAt(key, limits), `${key} uses ${used}`);
        assert.ok(heldIn(state).length <= limits.tokensMax);
        assert.ok(new Set(state.waiting().map(({ waiter }) => waiter)).size <= limits.waitersMax);
      }
    }),
    { numRuns: 500 },
  );
});

test("a request's caps limit it, even if others were granted without caps", () => {
  fc.assert(
    fc.property(steps, some.allocation, (taken, allocation) => {
      const state = opened(some.ROOMY);
      for (const one of taken) take(state, one);
      const allocations = [allocation];
      const outcome = state.grant({ epoch: EPOCH, holder: ANN, allocations, ...NOT_WAITING });
      if (outcome.kind !== "granted" || outcome.held) return;
      const sums = canonicalSums(state.used());
      for (const { pool, project, namespace, caps } of allocations) {
        assert.ok((sums[scopeKey({ kind: "project", pool, project })] ?? 0) <= (caps.project ?? Number.MAX_VALUE));
        assert.ok(
          (sums[scopeKey({ kind: "namespace", pool, project, namespace })] ?? 0) <=
            (caps.namespace ?? Number.MAX_VALUE),
        );
      }
    }),
    { numRuns: 500 },
  );
});

test("a freeze grants nothing, takes nothing, and lets who waits keep the place; its end leaves no trace", () => {
  fc.assert(
    fc.property(steps, some.freezes, some.stand, some.waiter, (taken, freezes, stand, waiter) => {
      const state = opened(some.ROOMY);
      for (const one of taken) take(state, one);
      const free = opened(some.ROOMY);
      for (const one of taken) take(free, one);
      const before = { held: heldIn(state), sums: canonicalSums(state.used()), waiting: state.waiting() };
      const limits = some.frozen(some.ROOMY, freezes);
      state.setLimits(EPOCH, { ...limits, version: 2 });
      const isFrozen = ({ pool, queue }: { readonly pool: string; readonly queue: string | null }) => {
        const [ofPool, ofQueue] = [limits.pools, limits.queues.filter((one) => one.queue === queue)];
        return [...ofPool, ...ofQueue].some((one) => one.pool === pool && one.freeze !== undefined);
      };
      const held = new Set(before.held.map(tokenKey));
      for (const one of before.held) assert.ok(heldIn(state).map(tokenKey).includes(tokenKey(one)));
      assert.ok(!heldIn(state).some((one) => !held.has(tokenKey(one)) && isFrozen(one)));
      const asked = { ...stand, epoch: EPOCH, waiter: `${waiter}-new` };
      const outcome = state.stand(asked);
      const unfrozen = free.stand(asked);
      // One that waited may have been granted the token: it is not frozen, or a frozen one does not keep it waiting.
      const isTaken = outcome.kind === "conflict" || unfrozen.kind === "conflict";
      if (!isTaken) assert.equal(outcome.kind === "never", unfrozen.kind === "never");
      if (outcome.kind === "granted" && !outcome.held) assert.ok(!stand.allocations.some(isFrozen));
      if (outcome.kind === "waiting" && outcome.violation?.frozen) assert.equal(outcome.violation.limit, 0);
      state.leave(EPOCH, asked.waiter);
      const places = state.waiting().map((one) => `${one.waiter} ${one.pool} ${one.sinceMs}`);
      const stays = before.waiting
        .filter(isFrozenPlace(limits))
        // One whose holder was granted the same already, by a call of its own, has nothing to wait for.
        .filter(
          ({ waiter }) =>
            !isGranted(
              taken.findLast((one) => isStandOf(one, waiter)),
              before.held,
            ),
        )
        .map((one) => `${one.waiter} ${one.pool} ${one.sinceMs}`);
      for (const place of stays) assert.ok(places.includes(place), `${place} is gone`);
    }),
    { numRuns: 500 },
  );
});

function isStandOf(step: Step, waiter: string): boolean {
  return step.verb === "stand" && step.waiter === waiter;
}

/** True if the holder of a request holds each token that it asks for, with the same amount. */
function isGranted(step: Step | undefined, held: readonly HeldToken[]): boolean {
  if (step?.verb !== "stand") return false;
  const holder = holderKey(step.holder);
  return step.allocations.every((asked) => {
    const row = held.find((one) => tokenKey(one) === tokenKey(asked));
    return row?.amount === asked.amount && holderKey(row.holder) === holder;
  });
}

/** Places in the lines of frozen pools. */
function isFrozenPlace(limits: Limits) {
  return ({ pool }: { readonly pool: string }) =>
    limits.pools.some((one) => one.pool === pool && one.freeze !== undefined);
}

test("changed limits take nothing away and admit nothing above them, and queues' sums follow the new tree", () => {
  fc.assert(
    fc.property(steps, some.limits, steps, (first, limits, second) => {
      const state = opened(some.ROOMY);
      for (const one of first) take(state, one);
      const before = canonicalSums(state.used());
      const held = heldIn(state).map(tokenKey);
      state.setLimits(EPOCH, { ...limits, version: 2 });
      const now = new Set(heldIn(state).map(tokenKey));
      for (const key of held) assert.ok(now.has(key), `${key} must still be held`);
      let last = canonicalSums(state.used());
      assert.deepEqual(last, expectedSums(heldIn(state), limits));
      for (const [key, used] of Object.entries(last)) {
        const isQueue = key.startsWith('["queue"');
        assert.ok(isQueue || used <= Math.max(before[key] ?? 0, limitAt(key, limits)), key);
      }
      for (const one of second) {
        take(state, one);
        const sums = canonicalSums(state.used());
        for (const [key, used] of Object.entries(sums)) {
          assert.ok(used <= Math.max(last[key] ?? 0, limitAt(key, limits)), `${key} grew to ${used}`);
        }
        last = sums;
      }
      assert.equal(state.setLimits(EPOCH, { ...some.ROOMY, version: 1 }), "older");
    }),
    { numRuns: 500 },
  );
});

test("a repeated grant changes nothing, and a freed grant leaves no trace", () => {
  fc.assert(
    fc.property(some.limits, steps, some.allocations, some.holder, (limits, taken, allocations, holder) => {
      const state = opened({ ...limits, waitersMax: 0 });
      for (const one of taken) take(state, one);
      const before = canonicalSums(state.used());
      const outcome = state.grant({ epoch: EPOCH, holder, allocations, ...NOT_WAITING });
      if (outcome.kind !== "granted" || outcome.held) return;
      const during = canonicalSums(state.used());
      const again = state.grant({ epoch: EPOCH, holder, allocations, ...NOT_WAITING });
      assert.deepEqual(again, { ...outcome, held: true });
      assert.deepEqual(canonicalSums(state.used()), during);
      const refs = allocations.map(({ pool, token }) => ({ pool, token, fence: outcome.fence }));
      const others = refs.map((ref) => ({ ...ref, fence: ref.fence + 1n }));
      assert.ok(state.free(EPOCH, others) !== "closed");
      assert.deepEqual(canonicalSums(state.used()), during);
      state.free(EPOCH, [...refs, ...refs]);
      assert.deepEqual(canonicalSums(state.used()), before);
    }),
    { numRuns: 500 },
  );
});

test("a returned part is subtracted once, in any order and however often it is reported", () => {
  fc.assert(
    fc.property(
      some.limits,
      steps,
      some.allocations,
      fc.array(fc.tuple(fc.nat(2), some.rest, fc.boolean()), { maxLength: 8 }),
      (limits, taken, allocations, shrinks) => {
        const state = opened({ ...limits, waitersMax: 0 });
        for (const one of taken) take(state, one);
        const before = canonicalSums(state.used());
        const outcome = state.grant({ epoch: EPOCH, holder: ANN, allocations, ...NOT_WAITING });
        if (outcome.kind !== "granted" || outcome.held) return;
        const left = allocations.map(({ pool, token, amount }) => ({ pool, token, amount, fence: outcome.fence }));
        for (const [at, amount, isOthers] of shrinks) {
          const allocation = left[at % left.length];
          if (allocation === undefined) continue;
          const fence = allocation.fence + (isOthers ? 1n : 0n);
          const goes = !isOthers && amount < allocation.amount;
          const answer = isOthers ? "notHeld" : goes ? "shrunk" : "asItIs";
          assert.deepEqual(state.shrink(EPOCH, [{ ...allocation, amount, fence }]), [answer]);
          if (goes) allocation.amount = amount;
          assert.deepEqual(canonicalSums(state.used()), expectedSums(heldIn(state), limits));
        }
        const now = left.map((allocation) => heldIn(state).find((held) => tokenKey(held) === tokenKey(allocation)));
        assert.deepEqual(
          now.map((held) => [held?.amount, held?.fence]),
          left.map(({ amount, fence }) => [amount, fence]),
        );
        const kept = allocations.map((allocation, at) => ({ ...allocation, amount: left[at]?.amount ?? 0 }));
        const again = state.grant({ epoch: EPOCH, holder: ANN, allocations: kept, ...NOT_WAITING });
        assert.deepEqual(again, { ...outcome, held: true });
        state.free(EPOCH, left);
        assert.deepEqual(canonicalSums(state.used()), before);
        assert.deepEqual(state.shrink(EPOCH, left.slice(0, 1)), ["notHeld"]);
      },
    ),
    { numRuns: 500 },
  );
});

test("turned-over tokens are never free: nobody else gets them, and no pool uses more or less for a moment", () => {
  fc.assert(
    fc.property(
      some.limits,
      steps,
      some.allocation,
      fc.array(some.heir, { maxLength: 6 }),
      (limits, taken, one, heirs) => {
        const state = opened(limits);
        for (const step of taken) take(state, step);
        const outcome = state.grant({ epoch: EPOCH, holder: ANN, allocations: [one], ...NOT_WAITING });
        if (outcome.kind !== "granted" || outcome.held) return;
        const { pool, token } = one;
        const from = { pool, token, fence: outcome.fence };
        let left = one.amount;
        for (const { kept, ...given } of heirs) {
          const turn: TurnOver = { from: { ...from, kept }, to: { ...given, pool, fence: from.fence } };
          const before = heldIn(state);
          const isHeld = before.some((held) => tokenKey(held) === tokenKey(turn.to));
          const goes = left > kept && !isHeld;
          assert.deepEqual(state.turnOver(EPOCH, [turn]), [left === 0 ? "notHeld" : goes ? "turnedOver" : "asItIs"]);
          const after = heldIn(state);
          assert.deepEqual(canonicalSums(state.used()), expectedSums(after, limits));
          if (!goes) {
            assert.deepEqual(after, before);
            continue;
          }
          const amount = Math.min(given.amount, left - kept);
          const heirs = after.filter((held) => tokenKey(held) === tokenKey(turn.to));
          assert.deepEqual(heirs, [{ ...turn.to, amount, leaseMs: null, confirmed: true }]);
          // The waiting line gets no more than the heir leaves.
          const others = after.filter(
            (held) => held.pool === pool && !before.some((old) => tokenKey(old) === tokenKey(held)),
          );
          const free = left - kept - amount;
          const room = limitBook(limits).pool(pool).quota ?? Number.MAX_SAFE_INTEGER;
          const used = sum(before.filter((held) => held.pool === pool));
          assert.ok(sum(others) - amount <= Math.max(0, room - used) + free, "nobody else may get what the heir gets");
          left = kept;
          assert.deepEqual(state.turnOver(EPOCH, [turn]), [left === 0 ? "notHeld" : "asItIs"]);
          assert.deepEqual(heldIn(state), after);
        }
      },
    ),
    { numRuns: 500 },
  );
});

test("an heir gets its tokens above every limit; a token ends once nothing is left of it", () => {
  const state = opened(some.ROOMY);
  const [all] = waiting({ amount: 6, token: "all" }).allocations;
  assert.ok(all);
  const granted = state.grant({ epoch: EPOCH, holder: ANN, allocations: [all], ...NOT_WAITING });
  assert.ok(granted.kind === "granted");
  state.stand(waiting({ amount: 2 }));
  const from = { pool: all.pool, token: "all", fence: granted.fence };
  const heir = { kind: "admission", jobUid: "heir", admission: 2 } as const;
  const turn = (token: string, kept: number, amount: number) => ({
    from: { ...from, kept },
    to: { ...from, token, amount, holder: heir, project: "p", namespace: "n", queue: "nowhere" },
  });
  assert.equal(state.turnOver(EPOCH + 1, [turn("one", 3, 3)]), "closed");
  state.setLimits(EPOCH, { ...some.ROOMY, version: 2, tokensMax: 1, pools: [] });
  assert.deepEqual(state.turnOver(EPOCH, [turn("one", 3, 3), turn("two", 0, 3)]), ["turnedOver", "turnedOver"]);
  assert.deepEqual(
    heldIn(state).map(({ token, amount, holder: by }) => [token, amount, by]),
    [
      ["one", 3, heir],
      ["two", 3, heir],
    ],
  );
  assert.equal(state.waiting().length, 1, "the waiter still waits");
  assert.throws(() => state.turnOver(EPOCH, [turn("none", 0, 0)]));
  assert.throws(() => state.turnOver(EPOCH, [turn("less", -1, 1)]));
  const elsewhere = turn("other", 0, 1);
  assert.throws(() => state.turnOver(EPOCH, [{ ...elsewhere, to: { ...elsewhere.to, pool: "gpu/1" } }]));
});

function sum(held: readonly { readonly amount: number }[]): number {
  return held.reduce((total, { amount }) => total + amount, 0);
}

test("the head of the waiting line gets the room of a shrunk token; another epoch shrinks nothing", () => {
  const state = opened(some.ROOMY);
  const [allocation] = waiting({ amount: 6, token: "all" }).allocations;
  assert.ok(allocation);
  const granted = state.grant({ epoch: EPOCH, holder: ANN, allocations: [allocation], ...NOT_WAITING });
  assert.ok(granted.kind === "granted");
  assert.equal(state.stand(waiting({ amount: 4 })).kind, "waiting");
  const rest = (amount: number) => [{ pool: allocation.pool, token: "all", fence: granted.fence, amount }];
  assert.equal(state.shrink(EPOCH + 1, rest(1)), "closed");
  assert.deepEqual(state.shrink(EPOCH, rest(3)), ["shrunk"]);
  assert.equal(heldIn(state).length, 1);
  assert.deepEqual(state.shrink(EPOCH, rest(2)), ["shrunk"]);
  assert.deepEqual(
    heldIn(state).map(({ token, amount }) => [token, amount]),
    [
      ["all", 2],
      ["wanted", 4],
    ],
  );
  assert.throws(() => state.shrink(EPOCH, rest(0)));
});

const waiting = (of: Partial<Allocation> & Partial<StandRequest>): StandRequest => {
  const { pool = "gpu/0", token = "wanted", amount = 5, queue = null, caps = NO_CAPS, ...rest } = of;
  const allocation = { pool, token, amount, queue, caps, project: "waits", namespace: "waits", leaseMs: null };
  return {
    epoch: EPOCH,
    waiter: "head",
    holder: ANN,
    allocations: [allocation],
    priority: 0,
    sinceMs: 0,
    grants: true,
    ...rest,
  };
};

test("no request behind the head takes its room, and the head is granted when it fits", () => {
  const others = fc.array(
    fc.record({ amount: fc.integer({ min: 1, max: 3 }), priority: fc.constantFrom(-1, 0, 0, 1), frees: fc.nat(20) }),
    { maxLength: 40 },
  );
  fc.assert(
    fc.property(others, fc.integer({ min: 1, max: 6 }), (asked, amount) => {
      const offers: string[] = [];
      const state = opened(some.ROOMY, offers);
      const used = () => canonicalSums(state.used())[scopeKey({ kind: "pool", pool: "gpu/0" })] ?? 0;
      const allocation = { pool: "gpu/0", project: "p", namespace: "n", queue: null, caps: NO_CAPS, leaseMs: null };
      state.grant({
        epoch: EPOCH,
        holder: ANN,
        allocations: [{ ...allocation, token: "all", amount: 6 }],
        ...NOT_WAITING,
      });
      assert.equal(state.stand(waiting({ amount })).kind, "waiting");
      for (const [at, one] of asked.entries()) {
        const free = heldIn(state)[one.frees];
        if (free !== undefined) state.free(EPOCH, [free]);
        const isIn = heldIn(state).some(({ token }) => token === "wanted");
        assert.equal(isIn, offers.length > 0);
        assert.ok(isIn || 6 - used() < amount, "the head may wait only while it does not fit");
        if (isIn) return;
        const allocations = [{ ...allocation, token: `${at}`, amount: one.amount }];
        const outcome = state.grant({ epoch: EPOCH, holder: ANN, allocations, priority: one.priority, waiter: null });
        if (one.priority > 0) continue;
        assert.ok(outcome.kind === "exhausted" && outcome.violation.reservedForHead === amount);
      }
    }),
    { numRuns: 300 },
  );
});

test("a waiter that is blocked by a full queue is skipped and blocks no other request", () => {
  fc.assert(
    fc.property(steps, some.allocations, some.holder, some.priority, (taken, allocations, holder, priority) => {
      const [without, beside] = [opened(some.ROOMY), opened(some.ROOMY)];
      const full = { token: "full", amount: 6, queue: "team", pool: "gpu/1", caps: NO_CAPS } as const;
      for (const state of [without, beside]) {
        const allocation = { ...full, project: "p", namespace: "n", leaseMs: null };
        assert.equal(
          state.grant({ epoch: EPOCH, holder: ANN, allocations: [allocation], ...NOT_WAITING }).kind,
          "granted",
        );
      }
      const blocked = waiting({ waiter: "blocked", queue: "team", pool: "gpu/1", amount: 1, priority: 2 ** 31 - 1 });
      beside.stand(blocked);
      for (const one of taken.filter(({ verb }) => verb === "grant")) {
        assert.deepEqual(take(beside, one), take(without, one));
      }
      const request = { epoch: EPOCH, holder, allocations, priority, waiter: null };
      assert.deepEqual(beside.grant(request), without.grant(request));
    }),
    { numRuns: 300 },
  );
});

test("a lease lapses only on the lease clock, which stops without reports, and a lapsed lease is not renewed", () => {
  const ticks = fc.array(fc.record({ report: fc.boolean(), elapsedMs: fc.integer({ min: -10, max: 100_000 }) }), {
    maxLength: 30,
  });
  fc.assert(
    fc.property(ticks, fc.integer({ min: 1, max: 8_000 }), (passed, leaseMs) => {
      const state = opened(some.ROOMY);
      const allocation = { ...waiting({}).allocations[0], amount: 1, leaseMs } as Allocation;
      assert.equal(
        state.grant({ epoch: EPOCH, holder: ANN, allocations: [allocation], ...NOT_WAITING }).kind,
        "granted",
      );
      let [clockMs, silent] = [0, 0];
      for (const { report, elapsedMs } of passed) {
        if (report) {
          state.report(EPOCH);
          silent = 0;
        }
        const ticked = state.tick(EPOCH, { elapsedMs, unconfirmedMs: 0, limit: 10 });
        assert.ok(ticked.kind === "ticked");
        assert.equal(ticked.advanced, silent < 2);
        const byMs = ticked.clockMs - clockMs;
        assert.ok(ticked.advanced ? byMs === Math.min(Math.max(elapsedMs, 0), TICK_MS_MAX) : byMs === 0);
        clockMs = ticked.clockMs;
        silent += 1;
        assert.deepEqual(
          ticked.lapsed.map(({ token }) => token),
          clockMs >= leaseMs ? ["wanted"] : [],
        );
      }
      const renewed = state.renew(EPOCH, { holder: ANN, allocations: [allocation] });
      assert.ok(renewed !== "closed");
      assert.equal(renewed[0]?.kind, clockMs >= leaseMs ? "lapsed" : "renewed");
      const again = state.grant({ epoch: EPOCH, holder: ANN, allocations: [allocation], ...NOT_WAITING });
      assert.equal(again.kind, clockMs >= leaseMs ? "conflict" : "granted");
    }),
    { numRuns: 300 },
  );
});

test("a waiter leaves the waiting line unless it repeats its request", () => {
  const state = opened(some.ROOMY);
  const allocation = { ...waiting({}).allocations[0], amount: 6, token: "all" } as Allocation;
  state.grant({ epoch: EPOCH, holder: ANN, allocations: [allocation], ...NOT_WAITING });
  state.stand(waiting({ waiter: "first", token: "a" }));
  state.stand(waiting({ waiter: "second", token: "b", sinceMs: 1 }));
  for (let passedMs = 0; passedMs < STAND_LEASE_MS; passedMs += TICK_MS_MAX) {
    state.report(EPOCH);
    state.stand(waiting({ waiter: "second", token: "b", sinceMs: 1 }));
    state.tick(EPOCH, { elapsedMs: TICK_MS_MAX, unconfirmedMs: 0, limit: 1 });
  }
  assert.deepEqual(
    state.waiting().map(({ waiter }) => waiter),
    ["second"],
  );
});

test("a new open gives every row its full lease, confirms it, and empties the waiting lines", () => {
  fc.assert(
    fc.property(steps, (taken) => {
      const state = opened(some.ROOMY);
      for (const one of taken) take(state, one);
      const rows = heldIn(state).map(({ confirmed: _, ...row }) => row);
      state.open(EPOCH + 1, { rows, limits: some.ROOMY });
      assert.deepEqual(state.waiting(), []);
      assert.deepEqual(canonicalSums(state.used()), expectedSums(heldIn(state), some.ROOMY));
      const ticked = state.tick(EPOCH + 1, { elapsedMs: 1, unconfirmedMs: 0, limit: 10 });
      assert.ok(ticked.kind === "ticked" && ticked.lapsed.length === 0 && ticked.unconfirmed.length === 0);
      for (const row of rows) {
        const allocations = [{ ...row, caps: NO_CAPS }];
        const found = state.grant({ epoch: EPOCH + 1, holder: row.holder, allocations, ...NOT_WAITING });
        assert.ok(found.kind === "granted" && found.held && found.confirmed && found.expiresInMs[0] === row.leaseMs);
      }
    }),
    { numRuns: 200 },
  );
});
