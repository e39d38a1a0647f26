import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { available, availableIn, borrowingLevel, lowestFit } from "../../../../src/core/plan/usage/branch-use.ts";
import { type Branch, upward } from "../../../../src/core/plan/usage/branches.ts";
import type { QuotaState } from "../../../../src/core/plan/usage/quota-state.ts";
import { compareShares, shareOf, weightedShare } from "../../../../src/core/plan/usage/shares.ts";
import {
  accountOf,
  allBranches,
  chargeAll,
  emptyState,
  POOL_NAMES,
  someQueues,
  someUses,
  useTable,
} from "./tree-world.ts";

const AMOUNTS_MAX = 80;
const someAmount = fc.integer({ min: 1, max: 12 });
const somePool = fc.constantFrom(...POOL_NAMES);

function leaves(state: QuotaState): readonly Branch[] {
  return allBranches(state).filter(({ children }) => children.length === 0);
}

/** The largest amount that the rule of the counters admits. */
function mostAdmitted(state: QuotaState, queue: string, pool: string): number {
  let most = 0;
  while (most < AMOUNTS_MAX && state.admits(accountOf(state, queue), pool, { need: most + 1, priority: 0 })) most += 1;
  return most;
}

test("the order in which use is added does not matter", () => {
  fc.assert(
    fc.property(someQueues, someUses, fc.infiniteStream(fc.nat()), (queues, uses, picks) => {
      const one = emptyState(queues);
      const other = emptyState(queues);
      const left = [...chargeAll(one, uses)];
      while (left.length > 0) chargeAll(other, left.splice((picks.next().value as number) % left.length, 1));
      assert.deepEqual(useTable(other), useTable(one));
    }),
  );
});

test("taking off use in any order gives the state without it, and undo gives it back", () => {
  fc.assert(
    fc.property(someQueues, someUses, someUses, fc.infiniteStream(fc.nat()), (queues, kept, uses, picks) => {
      const state = emptyState(queues);
      chargeAll(state, kept);
      const before = useTable(state);
      const left = [...chargeAll(state, uses)];
      const full = useTable(state);
      const { mark } = state;
      while (left.length > 0) {
        const [use] = left.splice((picks.next().value as number) % left.length, 1);
        state.discharge(accountOf(state, use!.queue), use!.pool, use!.amount);
      }
      assert.deepEqual(useTable(state), before);
      state.undo(mark);
      assert.deepEqual(useTable(state), full);
    }),
  );
});

test("use that is taken off and charged again widens no level", () => {
  fc.assert(
    fc.property(someQueues, someUses, (queues, uses) => {
      const state = emptyState(queues);
      const charged = chargeAll(state, uses);
      state.takeWidened();
      const { mark } = state;
      for (const { queue, pool, amount } of charged) state.discharge(accountOf(state, queue), pool, amount);
      state.undo(mark);
      assert.equal(state.takeWidened().size, 0);
    }),
  );
});

test("a queue has available what the counters admit, and no more while a queue uses more than its limit", () => {
  let within = 0;
  fc.assert(
    fc.property(someQueues, someUses, somePool, (queues, uses, pool) => {
      const state = emptyState(queues);
      chargeAll(state, uses);
      const over = allBranches(state).some(({ pools }) =>
        [...pools.values()].some(({ level }) => state.availableAt(level) < 0),
      );
      for (const leaf of leaves(state)) {
        if (!leaf.pools.has(pool)) {
          assert.equal(available(state, leaf, pool), 0);
          continue;
        }
        const most = mostAdmitted(state, leaf.name, pool);
        const found = available(state, leaf, pool);
        assert.ok(found <= most, `${leaf.name}: ${found} of ${most}`);
        if (!over) {
          within += 1;
          assert.equal(found, most);
        }
      }
    }),
  );
  assert.ok(within > 0);
});

test("with nothing in use a queue has its potential available", () => {
  fc.assert(
    fc.property(someQueues, (queues) => {
      const state = emptyState(queues);
      for (const { pools } of allBranches(state)) {
        for (const pool of pools.values()) assert.equal(availableIn(state, pool), pool.potential);
      }
    }),
  );
});

test("the lowest fit is the lowest branch that is within its quota once the amount is charged", () => {
  fc.assert(
    fc.property(someQueues, someUses, someAmount, somePool, (queues, uses, amount, pool) => {
      const state = emptyState(queues);
      chargeAll(state, uses);
      for (const leaf of leaves(state).filter(({ pools }) => pools.has(pool))) {
        const found = lowestFit(state, leaf.pools.get(pool)!, amount);
        const { mark } = state;
        state.charge(accountOf(state, leaf.name), pool, amount);
        const path = [...upward(leaf)].map(({ pools }) => pools.get(pool)!);
        const fitting = path.find((one) => state.usedIn(one) <= one.nominal) ?? path.at(-1)!;
        state.undo(mark);
        assert.deepEqual(found, { height: fitting.height, belowRoot: fitting.above !== null });
        assert.equal(borrowingLevel(state, leaf, new Map([[pool, amount]])), fitting.height);
      }
    }),
  );
});

/** The share by its definition, with everything summed anew. */
function definedShare(state: QuotaState, branch: Branch): number {
  if (branch.parent === null) return 0;
  const root = [...upward(branch)].at(-1)!;
  const potential = (pool: string) =>
    [...upward(branch.parent!)].find(({ pools }) => pools.has(pool))!.pools.get(pool)!;
  const ratios = ["gpu", "net"].map((resource) => {
    const pools = [...root.pools.keys()].filter((pool) => pool.startsWith(resource));
    const lendable = pools.reduce((sum, pool) => sum + potential(pool).potential, 0);
    const borrowed = pools.reduce((sum, name) => {
      const pool = branch.pools.get(name);
      return pool === undefined ? sum : sum + Math.max(0, state.usedIn(pool) - pool.nominal);
    }, 0);
    return borrowed === 0 || lendable === 0 ? 0 : (1000 * borrowed) / lendable;
  });
  const ratio = Math.max(...ratios);
  return ratio === 0 ? 0 : ratio / branch.weight;
}

test("a share is the largest part of a resource that the branch borrows, and compares without rounding", () => {
  fc.assert(
    fc.property(someQueues, someUses, (queues, uses) => {
      const state = emptyState(queues);
      chargeAll(state, uses);
      const branches = allBranches(state);
      const shares = branches.map((branch) => shareOf(state, branch));
      for (const [at, share] of shares.entries())
        assert.equal(weightedShare(share), definedShare(state, branches[at]!));
      for (const one of shares) {
        for (const other of shares) {
          const [a, b] = [weightedShare(one), weightedShare(other)];
          const both = a === Number.POSITIVE_INFINITY && a === b;
          const order = both ? Math.sign(one.ratio - other.ratio) : Math.sign(a === b ? 0 : a - b);
          assert.equal(Math.sign(compareShares(one, other)), order);
        }
      }
    }),
  );
});

test("more use never lowers a share, and an amount that is added counts as if it were charged to a leaf", () => {
  fc.assert(
    fc.property(someQueues, someUses, someAmount, somePool, (queues, uses, amount, pool) => {
      const state = emptyState(queues);
      chargeAll(state, uses);
      for (const leaf of leaves(state).filter(({ pools }) => pools.has(pool))) {
        const before = shareOf(state, leaf);
        const added = shareOf(state, leaf, new Map([[pool, amount]]));
        const { mark } = state;
        state.charge(accountOf(state, leaf.name), pool, amount);
        assert.deepEqual(shareOf(state, leaf), added);
        assert.ok(compareShares(before, added) <= 0);
        state.undo(mark);
      }
    }),
  );
});
