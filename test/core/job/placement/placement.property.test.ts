import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { nodesOf, type PlannedRun, placesIn, withRuns } from "../../../../src/core/job/placement/placement.ts";

const node = fc.constantFrom("n0", "n1", "n2", "n3");

const run: fc.Arbitrary<PlannedRun> = fc.record({
  role: fc.constantFrom("Master", "Worker"),
  first: fc.integer({ min: 0, max: 12 }),
  count: fc.integer({ min: 1, max: 6 }),
  node,
  others: fc.uniqueArray(node, { maxLength: 3 }),
});

test("after any plans each member has the place that the last plan with it gave it", () => {
  fc.assert(
    fc.property(fc.array(fc.array(run, { maxLength: 4 }), { minLength: 1, maxLength: 6 }), (plans) => {
      const expected = new Map<string, { node: string; others: readonly string[]; version: number }>();
      let placement = null;
      for (const [at, plan] of plans.entries()) {
        placement = withRuns(placement, plan);
        for (const { role, first, count, ...place } of plan) {
          for (let index = first; index < first + count; index++) {
            expected.set(`${role}/${index}`, { ...place, version: at + 1 });
          }
        }
      }
      const places = placesIn(placement);
      for (const role of ["Master", "Worker"]) {
        const nodes = nodesOf(placement ?? assert.fail(), role, 20);
        for (let index = 0; index < 20; index++) {
          const place = expected.get(`${role}/${index}`) ?? null;
          assert.deepEqual(places(role, index), place);
          assert.equal(nodes[index], place?.node ?? null);
        }
      }
      assert.equal(placement?.version, plans.length);
    }),
  );
});

test("a placement names each node once, and no node that no run names", () => {
  fc.assert(
    fc.property(fc.array(fc.array(run, { maxLength: 4 }), { minLength: 1, maxLength: 6 }), (plans) => {
      const placement = plans.reduce(
        (before: ReturnType<typeof withRuns> | null, plan) => withRuns(before, plan),
        null,
      );
      const named = placement?.runs.flatMap((one) => [one.node, ...one.others]) ?? [];
      assert.deepEqual([...new Set(named)].sort(), [...(placement?.nodes.keys() ?? [])]);
      assert.equal(new Set(placement?.nodes).size, placement?.nodes.length);
    }),
  );
});

test("no member has a place without a placement", () => {
  assert.equal(placesIn(null)("Worker", 0), null);
});
