import assert from "node:assert/strict";
import { test } from "node:test";
import { GRANTS_MAX } from "../../../src/core/quota/allocations.ts";
import { CounterState } from "../../../src/core/quota/counter-state.ts";
import type { BatchedGrant, PoolLimit } from "../../../src/core/quota/counters.ts";
import { ceilings } from "../../tokens/limits.ts";

const EPOCH = 3;

const limitOf = (pool: string, quota: number): PoolLimit => {
  return { pool, quota, projectDefault: null, namespaceDefault: null };
};

/** Counters with 4 of each pool, and a queue that may use 2 of `gpu`. */
function start(): CounterState {
  const state = new CounterState();
  const limits = {
    ...ceilings([{ queue: "q", pool: "gpu", limit: 2 }]),
    pools: [limitOf("gpu", 4), limitOf("tpu", 4)],
  };
  state.open(EPOCH, { rows: [], limits });
  return state;
}

type Asked = { pool?: string; queue?: string | null; chain?: string | null; stops?: boolean };

function ask(token: string, amount: number, of: Asked = {}): BatchedGrant {
  const { pool = "gpu", queue = null, chain = null, stops = false } = of;
  const caps = { project: null, namespace: null };
  return {
    holder: { kind: "admission", jobUid: token, admission: 1 },
    allocations: [{ pool, token, amount, project: "p", namespace: "n", queue, caps, leaseMs: null }],
    priority: 0,
    waiter: null,
    chain,
    stops,
  };
}

const cases: Record<string, { asked: readonly BatchedGrant[]; kinds: string }> = {
  "a request that does not fit holds up no other": {
    asked: [ask("a", 3), ask("b", 2), ask("c", 1)],
    kinds: "granted exhausted granted",
  },
  "after a request of a chain that does not fit, the chain's later ones are not tried": {
    asked: [ask("a", 3, { chain: "s" }), ask("b", 2, { chain: "s" }), ask("c", 1, { chain: "s" }), ask("d", 1)],
    kinds: "granted exhausted notTried granted",
  },
  "chains do not hold up each other": {
    asked: [ask("a", 5, { chain: "s" }), ask("b", 1, { chain: "t" }), ask("c", 1, { chain: "s" })],
    kinds: "exhausted granted notTried",
  },
  "a request that stops the call is the last one tried if a pool refuses it": {
    asked: [ask("a", 1, { stops: true }), ask("b", 4, { stops: true }), ask("c", 1, { pool: "tpu" })],
    kinds: "granted exhausted notTried",
  },
  "a refusal of a queue stops no call": {
    asked: [ask("a", 3, { queue: "q", stops: true }), ask("b", 1)],
    kinds: "exhausted granted",
  },
  "a token that another request holds is a conflict, which ends its chain": {
    asked: [ask("a", 1), ask("a", 2, { chain: "s" }), ask("b", 1, { chain: "s" })],
    kinds: "granted conflict notTried",
  },
};
for (const [name, { asked, kinds }] of Object.entries(cases)) {
  test(name, () => {
    const outcomes = start().grantAll(EPOCH, asked);
    assert.equal(outcomes.map(({ kind }) => kind).join(" "), kinds);
  });
}

test("a repeated call finds the same fences and charges nothing", () => {
  const state = start();
  const asked = [ask("a", 2), ask("b", 2)];
  const first = state.grantAll(EPOCH, asked);
  const again = state.grantAll(EPOCH, asked);
  const fences = (outcomes: typeof first) => outcomes.map((one) => (one.kind === "granted" ? one.fence : null));
  assert.deepEqual(fences(again), fences(first));
  assert.equal(new Set(fences(first)).size, 2);
  assert.equal(state.used().find(({ scope }) => scope.kind === "pool")?.used, 4);
});

test("counters that are closed, or open under another epoch, answer so for every request", () => {
  const asked = [ask("a", 1, { chain: "s" }), ask("b", 1, { chain: "s" })];
  for (const outcomes of [new CounterState().grantAll(EPOCH, asked), start().grantAll(EPOCH + 1, asked)]) {
    assert.deepEqual(outcomes, [{ kind: "closed" }, { kind: "closed" }]);
  }
});

test("a malformed request, or one too many, throws before any request is granted", () => {
  const state = start();
  assert.throws(() => state.grantAll(EPOCH, [ask("a", 1), ask("b", 0)]), /the amount of b/);
  const many = Array.from({ length: GRANTS_MAX + 1 }, (_, at) => ask(`t${at}`, 1));
  assert.throws(() => state.grantAll(EPOCH, many), /at most 256 requests, but got 257/);
  assert.deepEqual(state.used(), []);
});
