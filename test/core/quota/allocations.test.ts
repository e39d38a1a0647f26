import assert from "node:assert/strict";
import { test } from "node:test";
import {
  AMOUNT_MAX,
  checkAllocations,
  checkLease,
  checkPriority,
  checkRests,
  checkStand,
  compareText,
  holderKey,
  holderOfKey,
  holderText,
  sameHolder,
} from "../../../src/core/quota/allocations.ts";
import type { Allocation, Holder, Scope } from "../../../src/core/quota/counters.ts";
import { GrantBook } from "../../../src/core/quota/grant-book.ts";
import { scopeKey } from "../../../src/core/quota/scopes.ts";

const ALLOCATION: Allocation = {
  pool: "gpu",
  token: "t",
  amount: 1,
  project: "p",
  namespace: "n",
  queue: null,
  caps: { project: null, namespace: null },
  leaseMs: null,
};
const WAITER = { allocations: [ALLOCATION], priority: 0, sinceMs: 0, grants: true };
const HIGHEST = 2 ** 31 - 1;
const LOWEST = -(2 ** 31);

/** Each check with values at its bounds: those that pass, and those that are a caller's bug. */
const checks: Record<
  string,
  { readonly check: (value: number) => void; readonly passes: readonly number[]; readonly throws: readonly number[] }
> = {
  "a priority has 32 bits": {
    check: checkPriority,
    passes: [LOWEST, -1, 0, 1, HIGHEST],
    throws: [LOWEST - 1, HIGHEST + 1, 0.5, Number.NaN],
  },
  "the priority of a waiter has 32 bits": {
    check: (priority) => checkStand({ ...WAITER, priority }),
    passes: [LOWEST, HIGHEST],
    throws: [LOWEST - 1, HIGHEST + 1],
  },
  "a waiter waits since a whole millisecond": {
    check: (sinceMs) => checkStand({ ...WAITER, sinceMs }),
    passes: [0, AMOUNT_MAX],
    throws: [-1, 0.5, AMOUNT_MAX + 1],
  },
  "an amount is from 1 to the highest exact number": {
    check: (amount) => checkAllocations([{ ...ALLOCATION, amount }]),
    passes: [1, AMOUNT_MAX],
    throws: [0, -1, 1.5, AMOUNT_MAX + 1],
  },
  "the rest of a line is from 1 to the highest exact number": {
    check: (amount) => checkRests([{ ...ALLOCATION, fence: 1n, amount }]),
    passes: [1, AMOUNT_MAX],
    throws: [0, -1, 1.5, AMOUNT_MAX + 1],
  },
  "the cap of a project is from 0 on": {
    check: (project) => checkAllocations([{ ...ALLOCATION, caps: { project, namespace: null } }]),
    passes: [0, AMOUNT_MAX],
    throws: [-1, 0.5, AMOUNT_MAX + 1],
  },
  "the cap of a namespace is from 0 on": {
    check: (namespace) => checkAllocations([{ ...ALLOCATION, caps: { project: null, namespace } }]),
    passes: [0, AMOUNT_MAX],
    throws: [-1, 0.5, AMOUNT_MAX + 1],
  },
  "a lease is from 1 to 2^52 ms": {
    check: (leaseMs) => checkLease("t", leaseMs),
    passes: [1, 2 ** 52],
    throws: [0, -1, 1.5, 2 ** 52 + 1],
  },
  "the lease of a line is from 1 to 2^52 ms": {
    check: (leaseMs) => checkAllocations([{ ...ALLOCATION, leaseMs }]),
    passes: [1, 2 ** 52],
    throws: [0, 2 ** 52 + 1],
  },
};
for (const [name, { check, passes, throws }] of Object.entries(checks)) {
  test(name, () => {
    for (const value of passes) assert.doesNotThrow(() => check(value), `${value} passes`);
    for (const value of throws) assert.throws(() => check(value), new RegExp(`${value}`), `${value} does not`);
  });
}

test("a grant has allocations, each with a token of its own in its pool", () => {
  assert.throws(() => checkAllocations([]));
  assert.throws(() => checkAllocations([ALLOCATION, { ...ALLOCATION, amount: 2 }]));
  assert.doesNotThrow(() =>
    checkAllocations([ALLOCATION, { ...ALLOCATION, pool: "tpu" }, { ...ALLOCATION, token: "u" }]),
  );
});

test("a waiting line grants one allocation at most, and keeps places for any number", () => {
  const allocations = [ALLOCATION, { ...ALLOCATION, token: "u" }];
  assert.throws(() => checkStand({ ...WAITER, allocations }));
  assert.doesNotThrow(() => checkStand({ ...WAITER, allocations, grants: false }));
  assert.throws(() => checkStand({ ...WAITER, allocations: [], grants: false }));
});

const holders: readonly Holder[] = [
  { kind: "caller", name: "a" },
  { kind: "caller", name: "b" },
  { kind: "admission", jobUid: "a", admission: 1 },
  { kind: "admission", jobUid: "a", admission: 2 },
  { kind: "admission", jobUid: "b", admission: 1 },
];

test("a holder is the same as itself alone, and its key gives it back", () => {
  for (const [at, one] of holders.entries()) {
    assert.deepEqual(holderOfKey(holderKey(one)), one);
    for (const [index, other] of holders.entries()) assert.equal(sameHolder(one, { ...other }), at === index);
  }
  assert.deepEqual(holders.map(holderText), ["a", "b", "job/a/1", "job/a/2", "job/b/1"]);
});

test("texts are ordered by code points, the shorter of two with one beginning first", () => {
  const ordered = ["", "a", "aa", "ab", "b", "\u{ff5e}", "\u{1f600}"];
  assert.deepEqual(ordered.toReversed().toSorted(compareText), ordered);
  assert.equal(compareText("a", "a"), 0);
});

const scopes: readonly Scope[] = [
  { kind: "pool", pool: "gpu" },
  { kind: "queue", pool: "gpu", queue: "team" },
  { kind: "queue", pool: "gpu", queue: "root" },
  { kind: "project", pool: "gpu", project: "p" },
  { kind: "namespace", pool: "gpu", project: "p", namespace: "n" },
];

/** A book in which `team` has 2 of its own and passes on the rest to `root`, which may use 5. */
function book(used: number) {
  const pools = [{ pool: "gpu", quota: 9, projectDefault: null, namespaceDefault: null }];
  const queues = [
    { queue: "team", pool: "gpu", parent: "root", ceiling: 8, guarantee: 2 },
    { queue: "root", pool: "gpu", parent: null, ceiling: 5, guarantee: 5 },
  ];
  const direct = scopes.filter((scope) => scope.kind !== "queue" || scope.queue === "team");
  return new GrantBook({ pools, queues }, used === 0 ? [] : direct.map((scope) => ({ scope, used })));
}

const usedIn = (of: GrantBook) => Object.fromEntries(of.used().map(({ scope, used }) => [scopeKey(scope), used]));
const uses = (amounts: readonly number[]) =>
  Object.fromEntries(scopes.flatMap((scope, at) => (amounts[at] ? [[scopeKey(scope), amounts[at]]] : [])));
const allocation = { ...ALLOCATION, queue: "team" };

test("a grant book passes on what a queue uses beyond its guarantee", () => {
  assert.deepEqual(usedIn(book(0)), {});
  assert.deepEqual(usedIn(book(2)), uses([2, 2, 0, 2, 2]));
  assert.deepEqual(usedIn(book(3)), uses([3, 3, 1, 3, 3]));
});

test("a grant book counts all of some allocations, or none and names the scope that refuses them", () => {
  const fits = book(0);
  assert.equal(
    fits.take([
      { ...allocation, amount: 3 },
      { ...allocation, token: "u", amount: 4 },
    ]),
    null,
  );
  assert.deepEqual(usedIn(fits), uses([7, 7, 5, 7, 7]));
  const refused = book(3);
  const violation = refused.take([
    { ...allocation, amount: 4 },
    { ...allocation, token: "u" },
  ]);
  const scope = { kind: "queue", pool: "gpu", queue: "root" };
  assert.deepEqual(violation, { scope, used: 5, limit: 5, requested: 1, reservedForHead: 0 });
  assert.deepEqual(usedIn(refused), uses([3, 3, 1, 3, 3]));
});

test("a grant book counts an allocation that is charged whatever its limits", () => {
  const charged = book(0);
  charged.charge({ ...allocation, amount: 20 });
  assert.deepEqual(usedIn(charged), uses([20, 20, 18, 20, 20]));
  assert.equal(charged.usedAt({ kind: "queue", pool: "gpu", queue: "root" }), 18);
  assert.equal(charged.usedAt({ kind: "pool", pool: "tpu" }), 0);
});
