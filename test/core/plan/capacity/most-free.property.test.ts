import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { FitClasses } from "../../../../src/core/plan/capacity/fit-classes.ts";
import { FreeCapacity } from "../../../../src/core/plan/capacity/free-capacity.ts";

const MODELS = ["h100", "a100"];
const GPU = "nvidia.com/gpu";

type Step = { readonly kind: "place" | "free" | "mark" | "undo"; readonly at: number; readonly pods: number };

const steps = fc.array(
  fc.record<Step>({
    kind: fc.constantFrom("place", "place", "free", "mark", "undo"),
    at: fc.nat(3),
    pods: fc.integer({ min: 1, max: 3 }),
  }),
  { maxLength: 20 },
);

test("after any placements and undone ones, as many pods fit as the nodes have room for", () => {
  let refused = 0;
  let taken = 0;
  fc.assert(
    fc.property(fc.array(fc.nat(4), { minLength: 2, maxLength: 4 }), steps, (gpus, all) => {
      const fits = new FitClasses();
      const freeNow = new FreeCapacity(fits);
      for (const [at, free] of gpus.entries()) {
        const amounts = { [GPU]: free * 1000, cpu: 8000 };
        const labels = { gpu: MODELS[at % 2] ?? "" };
        freeNow.setNode(`node-${at}`, {
          name: `node-${at}`,
          labels,
          taints: [],
          unschedulable: false,
          allocatable: amounts,
          free: amounts,
        });
      }
      freeNow.reset();
      const classes = [1, 2, 4].flatMap((count) =>
        MODELS.map((gpu) => {
          const podClass = { requests: { [GPU]: count * 1000, cpu: 1000 }, scheduling: {} };
          return fits.of(podClass, { [GPU]: { gpu } });
        }),
      );
      const marks = [freeNow.mark];
      const check = () => {
        for (const fit of classes) {
          const [gpuOfPod = 0, cpuOfPod = 1] = [fit.podClass.requests[GPU], fit.podClass.requests["cpu"]];
          const expected = freeNow.nodesNow().reduce((sum, { labels, free }) => {
            if (labels["gpu"] !== fit.rules.nodeLabels["gpu"]) return sum;
            const pods = Math.min(Math.floor((free[GPU] ?? 0) / gpuOfPod), Math.floor((free["cpu"] ?? 0) / cpuOfPod));
            return sum + Math.max(0, pods);
          }, 0);
          assert.equal(freeNow.fitting(fit, Number.POSITIVE_INFINITY), expected);
          if (expected > 0) taken += 1;
          else refused += 1;
        }
      };
      check();
      for (const { kind, at, pods } of all) {
        const fit = classes[at % classes.length];
        if (fit === undefined) continue;
        if (kind === "place") freeNow.place(fit, pods);
        else if (kind === "free") freeNow.shift(`node-${at % gpus.length}`, fit, -pods);
        else if (kind === "mark") marks.push(freeNow.mark);
        else freeNow.undo(marks.pop() ?? 0);
        while ((marks.at(-1) ?? 0) > freeNow.mark) marks.pop();
        check();
      }
    }),
  );
  assert.ok(refused > 100 && taken > 100, `${refused} refused, ${taken} taken`);
});
