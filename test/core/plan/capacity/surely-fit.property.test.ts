import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { FitClasses } from "../../../../src/core/plan/capacity/fit-classes.ts";
import { FreeCapacity } from "../../../../src/core/plan/capacity/free-capacity.ts";
import { eachFits, type FitGroup, placeAll, surelyFit } from "../../../../src/core/plan/capacity/place-all.ts";

const GPU = "nvidia.com/gpu";

const amounts = fc.record({ gpus: fc.nat(8), cpus: fc.nat(64) });
const groups = fc.array(
  fc.record({ gpus: fc.nat(3), cpus: fc.integer({ min: 1, max: 5 }), count: fc.integer({ min: 1, max: 9 }) }),
  { minLength: 2, maxLength: 4 },
);

test("pods of several classes that surely fit are all placed, whatever nodes there are", () => {
  const met = { sure: 0, unsure: 0 };
  fc.assert(
    fc.property(fc.array(amounts, { minLength: 1, maxLength: 9 }), groups, (nodes, asked) => {
      const fits = new FitClasses();
      const freeNow = new FreeCapacity(fits);
      for (const [at, { gpus, cpus }] of nodes.entries()) {
        const free = { [GPU]: gpus * 1000, cpu: cpus * 1000 };
        const name = `node-${at}`;
        freeNow.setNode(name, { name, labels: {}, taints: [], unschedulable: false, allocatable: free, free });
      }
      freeNow.reset();
      const all = asked.map(({ gpus, cpus, count }): FitGroup => {
        const requests = { ...(gpus > 0 ? { [GPU]: gpus * 1000 } : {}), cpu: cpus * 1000 };
        return { fit: fits.of({ requests, scheduling: {} }, {}), count };
      });
      if (!eachFits(freeNow, all)) return;
      const isSure = surelyFit(all, (fit, count) => freeNow.fitting(fit, count) >= count);
      met[isSure ? "sure" : "unsure"] += 1;
      if (!isSure) return;
      assert.equal(placeAll(freeNow, all).all, true);
    }),
    { numRuns: 2000 },
  );
  assert.ok(met.sure > 50 && met.unsure > 50, JSON.stringify(met));
});
