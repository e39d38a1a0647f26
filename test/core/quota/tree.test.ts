import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { queueLimitsOf, type TreeQueue } from "../../../src/core/quota/tree.ts";

const MAX = Number.MAX_SAFE_INTEGER;
type Quota = readonly [nominal: number, borrowing?: number | null, lending?: number | null];
const queue = (name: string, parent: string | null, quota?: Quota): TreeQueue => {
  const [nominal = 0, borrowingLimit = null, lendingLimit = null] = quota ?? [];
  return { name, parent, quotas: quota === undefined ? [] : [{ pool: "gpu", nominal, borrowingLimit, lendingLimit }] };
};

const cases: Readonly<
  Record<string, { queues: readonly TreeQueue[]; limits: Readonly<Record<string, readonly [number, number]>> }>
> = {
  "a queue without a parent may use only its own quota, despite its borrowing limit": {
    queues: [queue("a", null, [8, 4, 2])],
    limits: { a: [8, 6] },
  },
  "a queue below another borrows up to its limit, and keeps the part that it does not lend": {
    queues: [queue("root", null, [10]), queue("a", "root", [8, 4, 2]), queue("b", "root", [3])],
    limits: { root: [15, 0], a: [12, 6], b: [MAX, 0] },
  },
  "a parent without a quota may use the sum of what the queues below lend": {
    queues: [queue("root", null), queue("a", "root", [8, 0, 0]), queue("b", "root", [3, null, 1])],
    limits: { root: [1, 0], a: [8, 8], b: [MAX, 2] },
  },
  "a queue has no limit for a pool that is named neither by it nor below it": {
    queues: [queue("root", null, [4]), queue("a", "root")],
    limits: { root: [4, 0] },
  },
  "a parent that does not exist counts as no parent": {
    queues: [queue("a", "gone", [4, 9])],
    limits: { a: [4, 0] },
  },
  "queues in a circle count as queues without parents": {
    queues: [queue("a", "b", [4]), queue("b", "a", [2])],
    limits: { a: [4, 0], b: [2, 0] },
  },
};

for (const [name, { queues, limits }] of Object.entries(cases)) {
  test(name, () => {
    const found = queueLimitsOf(queues).map(({ queue: of, ceiling, guarantee }) => [of, [ceiling, guarantee]]);
    assert.deepEqual(Object.fromEntries(found), limits);
  });
}

test("a root may use what its queues own minus what they keep, and no guarantee is lent", () => {
  const amount = fc.nat(20);
  const quota = fc.tuple(amount, fc.option(amount), fc.option(amount));
  const trees = fc
    .array(fc.tuple(fc.nat(6), quota), { minLength: 1, maxLength: 7 })
    .map((list) => list.map(([above, of], at) => queue(`q${at}`, at === 0 ? null : `q${above % at}`, of)));
  fc.assert(
    fc.property(trees, (queues) => {
      const limits = queueLimitsOf(queues);
      const kept = limits.filter(({ parent }) => parent !== null).reduce((sum, { guarantee }) => sum + guarantee, 0);
      const own = queues.reduce((sum, { quotas }) => sum + (quotas[0]?.nominal ?? 0), 0);
      assert.equal(limits.find(({ parent }) => parent === null)?.ceiling, own - kept);
      for (const { ceiling, guarantee } of limits) assert.ok(guarantee >= 0 && guarantee <= ceiling);
    }),
  );
});
