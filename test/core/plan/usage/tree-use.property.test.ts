import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { type Branch, rootOf } from "../../../../src/core/plan/usage/branches.ts";
import type { QuotaState } from "../../../../src/core/plan/usage/quota-state.ts";
import { borrowedBy, lentInTree } from "../../../../src/core/plan/usage/tree-use.ts";
import { allBranches, chargeAll, emptyState, POOL_NAMES, someQueues, someUses } from "./tree-world.ts";

const used = (state: QuotaState, branch: Branch, pool: string) => {
  const of = branch.pools.get(pool);
  return of === undefined ? 0 : state.usedIn(of);
};
const quota = (branch: Branch, pool: string) => branch.pools.get(pool)?.nominal ?? 0;
const sum = (numbers: readonly number[]) => numbers.reduce((total, one) => total + one, 0);

test("all that leaves of a tree borrow is lent by its leaves, but for what exceeds the whole tree", () => {
  fc.assert(
    fc.property(someQueues, someUses, (queues, uses) => {
      const state = emptyState(queues);
      chargeAll(state, uses);
      const roots = allBranches(state).filter((branch) => branch.parent === null && branch.children.length > 0);
      for (const root of roots) {
        const lent = lentInTree(state, root);
        const leaves = allBranches(state).filter((branch) => branch.children.length === 0 && rootOf(branch) === root);
        assert.equal(lent.length, leaves.length);
        for (const pool of POOL_NAMES) {
          const borrowed = sum(leaves.map((leaf) => borrowedBy(state, leaf).get(pool) ?? 0));
          const beyond = Math.max(0, used(state, root, pool) - quota(root, pool));
          assert.equal(sum(lent.map((one) => one.lent.get(pool) ?? 0)), borrowed - beyond, pool);
        }
      }
    }),
  );
});

test("no leaf lends what it uses itself or does not lend, and none borrows and lends the same", () => {
  fc.assert(
    fc.property(someQueues, someUses, (queues, uses) => {
      const state = emptyState(queues);
      chargeAll(state, uses);
      for (const root of allBranches(state).filter(({ parent }) => parent === null)) {
        for (const { leaf, lent } of lentInTree(state, root)) {
          for (const [pool, amount] of lent) {
            const of = leaf.pools.get(pool);
            assert.ok(of && amount > 0 && amount <= of.nominal - Math.max(of.guarantee, state.usedIn(of)));
            assert.equal(borrowedBy(state, leaf).has(pool), false);
          }
        }
      }
    }),
  );
});
