import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { CountTable } from "../../../../src/core/plan/capacity/count-table.ts";
import { type FitClass, FitClasses } from "../../../../src/core/plan/capacity/fit-classes.ts";
import { FreeCapacity } from "../../../../src/core/plan/capacity/free-capacity.ts";

const GPU = "nvidia.com/gpu";
const NODES = 6;
const CLASSES = 40;

type Item = { row: number; readonly fit: FitClass };

/** A node gets other amounts left, is of another kind, or goes; a class comes or goes. */
type Step =
  | { readonly kind: "node"; readonly at: number; readonly gpus: number; readonly cpus: number; readonly model: string }
  | { readonly kind: "gone"; readonly at: number }
  | { readonly kind: "class"; readonly at: number };

const at = (most: number) => fc.nat(most - 1);

const step = fc.oneof(
  fc.record({
    kind: fc.constant("node" as const),
    at: at(NODES),
    gpus: fc.integer({ min: -1, max: 8 }),
    cpus: fc.nat(8),
    model: fc.constantFrom("h100", "h100", "a100"),
  }),
  fc.record({ kind: fc.constant("gone" as const), at: at(NODES) }),
  fc.record({ kind: fc.constant("class" as const), at: at(CLASSES) }),
) satisfies fc.Arbitrary<Step>;

test("a table of counts has what the nodes take of each class, and names those with as many as somebody awaits", () => {
  let [named, unnamed] = [0, 0];
  fc.assert(
    fc.property(fc.array(fc.array(step, { maxLength: 12 }), { maxLength: 12 }), (rounds) => {
      const fits = new FitClasses();
      const freeNow = new FreeCapacity(fits);
      const classes = Array.from({ length: CLASSES }, (_, one) => {
        const podClass = { requests: { [GPU]: 1000 * (1 + (one % 4)), cpu: 500 * (1 + one) }, scheduling: {} };
        return fits.of(podClass, { [GPU]: { gpu: "h100" } });
      });
      const table = new CountTable<Item>(classes[0] as FitClass);
      const items = new Map<FitClass, Item>();
      const count = (fit: FitClass) => freeNow.fitting(fit, Number.POSITIVE_INFINITY);
      const change = (one: Step): void => {
        const name = `node-${one.at}`;
        if (one.kind === "gone") freeNow.setNode(name, null);
        if (one.kind === "node") {
          const free = { [GPU]: 1000 * one.gpus, cpu: 1000 * one.cpus };
          const facts = { labels: { gpu: one.model }, taints: [], unschedulable: false };
          freeNow.setNode(name, { name, ...facts, allocatable: free, free });
        }
      };
      const toggle = (fit: FitClass): void => {
        const known = items.get(fit);
        if (known !== undefined) {
          table.remove(known);
          items.delete(fit);
          return;
        }
        const item = { row: -1, fit };
        items.set(fit, item);
        table.add(item, fit, count(fit));
      };
      for (const steps of rounds) {
        freeNow.reset();
        freeNow.remember();
        for (const one of steps) if (one.kind === "class") toggle(classes[one.at] as FitClass);
        const before = new Map([...items.values()].map((item) => [item, table.countAt(item.row)]));
        for (const item of items.values()) table.setAwaited(item.row, 1 + (item.row % 5));
        for (const one of steps) change(one);
        freeNow.reset();
        const met = new Set<Item>();
        table.move(freeNow, freeNow.changed(), met);
        for (const item of items.values()) {
          const now = table.countAt(item.row);
          assert.equal(now, count(item.fit));
          const isEnough = now >= table.awaitedAt(item.row);
          if (isEnough && now > (before.get(item) ?? 0)) assert.ok(met.has(item));
          if (met.has(item)) assert.ok(isEnough);
          if (met.has(item)) named += 1;
          else unnamed += 1;
        }
      }
    }),
    { numRuns: 300 },
  );
  assert.ok(named > 50 && unnamed > 1000, `${named} named, ${unnamed} not`);
});
