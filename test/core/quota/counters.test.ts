import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { holderKey } from "../../../src/core/quota/allocations.ts";
import { CounterState } from "../../../src/core/quota/counter-state.ts";
import type { Allocation, GrantOutcome, Holder, LedgerRow } from "../../../src/core/quota/counters.ts";
import { scopesToRead } from "../../../src/core/quota/decide.ts";
import { limitBook } from "../../../src/core/quota/limits.ts";
import { scopeKey } from "../../../src/core/quota/scopes.ts";

import { type Ceiling, ceilings } from "../../tokens/limits.ts";

const NO_LIMITS = limitBook({ pools: [], queues: [] });
const NO_CAPS = { project: null, namespace: null };
const MAX = Number.MAX_SAFE_INTEGER;

/** A simple model of the counters: a list of held allocations, summed up for every question. */
class Model {
  held: LedgerRow[] = [];
  limits: readonly Ceiling[] = [];

  used(queue: string | null, pool: string): number {
    return this.held
      .filter((row) => row.queue === queue && row.pool === pool)
      .reduce((sum, row) => sum + row.amount, 0);
  }

  limit(queue: string | null, pool: string): number {
    return this.limits.find((limit) => limit.queue === queue && limit.pool === pool)?.limit ?? 0;
  }

  expects(holder: Holder, allocations: readonly Allocation[]): GrantOutcome["kind"] {
    const found = allocations.map((allocation) =>
      this.held.find((row) => row.pool === allocation.pool && row.token === allocation.token),
    );
    if (found.some((row) => row !== undefined)) {
      const same = found.every(
        (row, at) =>
          row !== undefined &&
          row.fence === found[0]?.fence &&
          row.amount === allocations[at]?.amount &&
          holderKey(row.holder) === holderKey(holder),
      );
      return same ? "granted" : "conflict";
    }
    const wanted = [...this.held, ...allocations];
    const sum = (of: (l: Pick<Allocation, "queue" | "pool" | "amount">) => boolean) =>
      wanted.filter(of).reduce((total, l) => total + BigInt(l.amount), 0n);
    const fits = allocations.every(
      ({ queue, pool }) =>
        sum((l) => l.queue === queue && l.pool === pool) <= BigInt(this.limit(queue, pool)) &&
        // A pool's sum stays within the exact numbers.
        sum((l) => l.pool === pool) <= BigInt(MAX),
    );
    return fits ? "granted" : "exhausted";
  }
}

const name = (letter: string, count: number) => fc.nat(count - 1).map((at) => `${letter}${at}`);
const allocation = fc.record({
  pool: name("gpu/", 2),
  token: name("t", 6),
  amount: fc.oneof(fc.integer({ min: 1, max: 4 }), fc.constant(MAX)),
  project: fc.constantFrom("team", "team1"),
  namespace: fc.constantFrom("team", "ns"),
  queue: name("q", 2),
  caps: fc.constant(NO_CAPS),
  leaseMs: fc.constant(null),
});
const allocations = fc.uniqueArray(allocation, { minLength: 1, maxLength: 3, selector: (l) => `${l.pool}/${l.token}` });
const holder = fc.record({
  kind: fc.constant("admission" as const),
  jobUid: name("job", 2),
  admission: fc.integer({ min: 1, max: 2 }),
});
const limits = fc.array(
  fc.record({ queue: name("q", 2), pool: name("gpu/", 2), limit: fc.oneof(fc.nat(8), fc.constant(MAX)) }),
  { maxLength: 4 },
);
const distinct = (list: readonly Ceiling[]) => [...new Map(list.map((l) => [`${l.queue}|${l.pool}`, l])).values()];
const command = fc.oneof(
  { weight: 5, arbitrary: fc.record({ do: fc.constant("grant" as const), holder, allocations }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("repeat" as const), at: fc.nat(5) }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant("free" as const), at: fc.nat(5) }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("setLimits" as const), limits }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("open" as const), keep: fc.nat(5) }) },
);

test("after any steps, the counters agree with a simple list of held allocations", () => {
  fc.assert(
    fc.property(limits, fc.array(command, { maxLength: 40 }), (first, commands) => {
      const state = new CounterState();
      const model = new Model();
      let epoch = 1;
      const fences = new Set<bigint>();
      model.limits = distinct(first);
      state.open(epoch, { rows: [], limits: ceilings(model.limits) });
      for (const step of commands) {
        if (step.do === "grant") grantBoth(step.holder, step.allocations);
        else if (step.do === "repeat") repeat(step.at);
        else if (step.do === "free") free(step.at);
        else if (step.do === "setLimits") {
          model.limits = distinct(step.limits);
          assert.equal(state.setLimits(epoch, ceilings(model.limits)), "set");
        } else {
          model.held = model.held.slice(0, step.keep);
          epoch += 1;
          state.open(epoch, { rows: model.held, limits: ceilings(model.limits) });
          assert.equal(state.setLimits(epoch - 1, ceilings([])), "closed");
        }
        assertSums();
      }

      function grantBoth(by: Holder, asked: readonly Allocation[]) {
        const before = model.held.length;
        const expected = model.expects(by, asked);
        const outcome = state.grant({ epoch, holder: by, priority: 0, waiter: null, allocations: asked });
        assert.equal(outcome.kind, expected);
        if (outcome.kind === "exhausted")
          assert.ok(outcome.violation.requested > outcome.violation.limit - outcome.violation.used);
        if (outcome.kind !== "granted" || outcome.held) return;
        assert.ok(!fences.has(outcome.fence), "a fence must never be used twice");
        assert.equal(outcome.fence >> 32n, BigInt(epoch));
        fences.add(outcome.fence);
        for (const l of asked) model.held.push({ ...l, holder: by, fence: outcome.fence });
        assert.equal(model.held.length, before + asked.length);
        for (const { queue, pool } of asked) assert.ok(model.used(queue, pool) <= model.limit(queue, pool));
      }

      function repeat(at: number) {
        const row = model.held[at % Math.max(1, model.held.length)];
        if (row === undefined) return;
        const outcome = state.grant({
          epoch,
          holder: row.holder,
          priority: 0,
          waiter: null,
          allocations: [{ ...row, caps: NO_CAPS }],
        });
        assert.ok(outcome.kind === "granted" && outcome.fence === row.fence && outcome.held);
      }

      function free(at: number) {
        const row = model.held[at % Math.max(1, model.held.length)];
        const fence = row?.fence ?? 99n;
        const together = model.held.filter((held) => held.fence === fence);
        const refs = row === undefined ? [{ pool: "gpu/0", token: "t", fence }] : together;
        assert.equal(state.free(epoch - 1, refs), "closed");
        assert.ok(state.free(epoch, refs) !== "closed");
        assert.deepEqual(
          state.free(epoch, refs),
          refs.map(() => "notHeld"),
        );
        model.held = model.held.filter((held) => held.fence !== fence);
      }

      function assertSums() {
        const expected = new Map<string, number>();
        for (const row of model.held) {
          for (const scope of scopesToRead(row, NO_LIMITS))
            expected.set(scopeKey(scope), (expected.get(scopeKey(scope)) ?? 0) + row.amount);
        }
        assert.deepEqual(new Map(state.used().map(({ scope, used }) => [scopeKey(scope), used])), expected);
      }
    }),
    { numRuns: 300 },
  );
});

const ONE: Allocation = {
  pool: "gpu/h100",
  token: "t",
  amount: 1,
  project: "p",
  namespace: "n",
  queue: "q",
  caps: NO_CAPS,
  leaseMs: null,
};
const BY: Holder = { kind: "admission", jobUid: "job", admission: 1 };

test("counters are closed until the first open", () => {
  assert.deepEqual(new CounterState().grant({ epoch: 1, priority: 0, waiter: null, holder: BY, allocations: [ONE] }), {
    kind: "closed",
  });
});

test("an older epoch cannot open or use the counters", () => {
  const state = new CounterState();
  state.open(2, { rows: [], limits: ceilings([{ queue: "q", pool: "gpu/h100", limit: 1 }]) });
  state.open(1, { rows: [], limits: ceilings([]) });
  assert.equal(state.grant({ epoch: 1, holder: BY, priority: 0, waiter: null, allocations: [ONE] }).kind, "closed");
  assert.deepEqual(state.grant({ epoch: 2, holder: BY, priority: 0, waiter: null, allocations: [ONE] }), {
    kind: "granted",
    fence: 2n ** 33n + 1n,
    held: false,
    confirmed: false,
    expiresInMs: [null],
  });
});

test("a waiter that requests a grant with a higher priority still leaves room for the head of its waiting line", () => {
  const state = new CounterState();
  const pools = [{ pool: "gpu/h100", quota: 4, projectDefault: null, namespaceDefault: null }];
  state.open(1, { rows: [], limits: { ...ceilings([]), pools } });
  const allocation = { ...ONE, queue: null };
  state.grant({
    epoch: 1,
    holder: BY,
    priority: 0,
    waiter: null,
    allocations: [{ ...allocation, token: "held", amount: 2 }],
  });
  const ask = (name: string, amount: number) => ({
    epoch: 1,
    waiter: name,
    holder: { kind: "caller", name } as const,
    allocations: [{ ...allocation, token: name, amount }],
  });
  assert.equal(state.stand({ ...ask("head", 4), priority: 5, sinceMs: 1, grants: false }).kind, "waiting");
  assert.equal(state.stand({ ...ask("behind", 1), priority: 0, sinceMs: 2, grants: false }).kind, "waiting");
  const outcome = state.grant({ ...ask("behind", 1), priority: 9 });
  assert.ok(outcome.kind === "exhausted");
  assert.equal(outcome.violation.reservedForHead, 4);
  assert.equal(state.grant({ ...ask("stranger", 1), priority: 9, waiter: null }).kind, "granted");
});

test("counters that are opened again under the same epoch give no fence twice", () => {
  const state = new CounterState();
  const limits = ceilings([{ queue: "q", pool: "gpu/h100", limit: 5 }]);
  const fence = 2n ** 32n + 7n;
  state.open(1, { rows: [{ ...ONE, holder: BY, fence }], limits });
  assert.deepEqual(
    state.grant({ epoch: 1, holder: BY, priority: 0, waiter: null, allocations: [{ ...ONE, token: "u" }] }),
    {
      kind: "granted",
      fence: fence + 1n,
      held: false,
      confirmed: false,
      expiresInMs: [null],
    },
  );
});

for (const amount of [0, -1, 1.5, Number.NaN, MAX + 1]) {
  test(`an amount of ${amount} throws`, () => {
    const state = new CounterState();
    state.open(1, { rows: [], limits: ceilings([{ queue: "q", pool: "gpu/h100", limit: MAX }]) });
    assert.throws(
      () => state.grant({ epoch: 1, holder: BY, priority: 0, waiter: null, allocations: [{ ...ONE, amount }] }),
      /the amount of t/,
    );
  });
}
