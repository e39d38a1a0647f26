import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { ClassCounts } from "../../../../src/core/plan/capacity/class-counts.ts";
import { type FitClass, FitClasses } from "../../../../src/core/plan/capacity/fit-classes.ts";
import { FreeCapacity } from "../../../../src/core/plan/capacity/free-capacity.ts";
import type { CapacityTry } from "../../../../src/core/plan/queues/records.ts";
import { ClusterWaits } from "../../../../src/core/plan/requeue/capacity-waits.ts";

const GPU = "nvidia.com/gpu";
const NODES = 10;
const PODS_MAX = 12;

type Step = { readonly kind: "place" | "mark" | "undo"; readonly at: number; readonly pods: number };

const steps = fc.array(
  fc.record<Step>({
    kind: fc.constantFrom("place", "place", "mark", "undo"),
    at: fc.nat(2),
    pods: fc.integer({ min: 1, max: 3 }),
  }),
  { maxLength: 20 },
);

/** A request for pods of one class, of which too few fit. */
function refused(fit: FitClass, count: number): CapacityTry {
  const request = { waiting: new Set(), lists: new Set(), reopened: null, lastRoom: null };
  return { request, groups: [{ fit, count }], short: fit, watched: false, listed: [] } as unknown as CapacityTry;
}

test("what a watch has counted stays true after any placements and undone ones, and one state is one room", () => {
  let [enough, tooFew, again] = [0, 0, 0];
  fc.assert(
    fc.property(fc.array(fc.nat(3), { minLength: NODES, maxLength: NODES }), steps, (gpus, all) => {
      const fits = new FitClasses();
      const freeNow = new FreeCapacity(fits);
      for (const [at, free] of gpus.entries()) {
        const amounts = { [GPU]: free * 1000, cpu: 8000 };
        const facts = { labels: { gpu: "h100" }, taints: [], unschedulable: false };
        freeNow.setNode(`node-${at}`, { name: `node-${at}`, ...facts, allocatable: amounts, free: amounts });
      }
      freeNow.reset();
      const classes = [1, 2, 3].map((count) => {
        const podClass = { requests: { [GPU]: count * 1000, cpu: 1000 }, scheduling: {} };
        return fits.of(podClass, { [GPU]: { gpu: "h100" } });
      });
      const counts = new ClassCounts(freeNow);
      const waits = new ClusterWaits(counts);
      for (const fit of classes) waits.add(refused(fit, freeNow.fitting(fit, Number.POSITIVE_INFINITY) + 1));
      counts.sync({ isStale: true, keepsSame: false });
      const seen = new Map<number, string>();
      const check = () => {
        const now = JSON.stringify(freeNow.nodesNow().map(({ free }) => free));
        if (seen.has(freeNow.state)) again += 1;
        assert.equal(seen.get(freeNow.state) ?? now, now);
        seen.set(freeNow.state, now);
        for (const fit of classes) {
          const fitting = freeNow.fitting(fit, Number.POSITIVE_INFINITY);
          for (let need = 1; need <= PODS_MAX; need++) {
            assert.equal(counts.isEnough(fit, need), fitting >= need);
            if (fitting >= need) enough += 1;
            else tooFew += 1;
          }
        }
      };
      const marks: number[] = [];
      check();
      for (const { kind, at, pods } of all) {
        if (kind === "place") freeNow.place(classes[at] as FitClass, pods);
        else if (kind === "mark") marks.push(freeNow.mark);
        else freeNow.undo(marks.pop() ?? 0);
        check();
      }
    }),
  );
  assert.ok(enough > 1000 && tooFew > 1000 && again > 100, `${enough} enough, ${tooFew} too few, ${again} again`);
});

test("a watch wakes the requests for which enough pods fit, and those alone", () => {
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1, maxLength: 12 }), fc.nat(9), (needs, gpus) => {
      const fits = new FitClasses();
      const freeNow = new FreeCapacity(fits);
      const setFree = (free: number) => {
        const amounts = { [GPU]: free * 1000 };
        const facts = { labels: {}, taints: [], unschedulable: false };
        freeNow.setNode("node", { name: "node", ...facts, allocatable: amounts, free: amounts });
        freeNow.reset();
      };
      setFree(0);
      const fit = fits.of({ requests: { [GPU]: 1000 }, scheduling: {} }, {});
      const counts = new ClassCounts(freeNow);
      const waits = new ClusterWaits(counts);
      const tries = needs.map((need) => refused(fit, need));
      for (const one of tries) waits.add(one);
      counts.sync({ isStale: true, keepsSame: false });
      for (const free of [gpus, 0, gpus]) {
        setFree(free);
        const woken = waits.wake(counts.sync({ isStale: true, keepsSame: false }));
        for (const [at, one] of tries.entries()) {
          const isMet = (needs[at] ?? 0) <= free;
          assert.equal(woken.includes(one.request), isMet);
          assert.equal(one.watched, !isMet);
          // A round refuses it again.
          if (isMet) waits.add(one);
        }
      }
    }),
  );
});
