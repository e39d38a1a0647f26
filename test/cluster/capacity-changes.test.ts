import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { CapacityChanges } from "../../src/adapters/cluster/capacity-changes.ts";
import {
  type CapacityEntry,
  capacityOf,
  type EntryKey,
  entryKeyText,
} from "../../src/core/plan/model/capacity-entry.ts";
import { CapacityBook } from "./capacity-book.ts";

/** A cluster whose entries a test changes. */
class Source {
  readonly entries = new Map<string, CapacityEntry>();
  all = () => [...this.entries.values()];
  entry = (key: EntryKey) => this.entries.get(entryKeyText(key)) ?? null;
}

const foreign = (name: string, cpu: number): CapacityEntry => ({
  kind: "unbound",
  name,
  pod: { podSpec: {}, requests: { cpu } },
});

async function report(changes: CapacityChanges, book: CapacityBook): Promise<void> {
  const part = changes.next();
  assert.ok(part !== null);
  changes.recorded(await book.take({ cluster: "one", reachable: true, ...part }));
}

test("the recorded parts are the capacity, whatever changes, fails or restarts", async () => {
  const step = fc.oneof(
    fc.record({ kind: fc.constant("set" as const), name: fc.constantFrom("a", "b", "c"), cpu: fc.nat(2) }),
    fc.record({ kind: fc.constant("remove" as const), name: fc.constantFrom("a", "b", "c") }),
    fc.record({ kind: fc.constantFrom("report" as const, "lose" as const, "restart" as const, "late" as const) }),
  );
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 30 }), async (steps) => {
      const source = new Source();
      const changes = new CapacityChanges(source);
      const book = new CapacityBook();
      for (const one of steps) {
        if (one.kind === "set") source.entries.set(`unbound/${one.name}`, foreign(one.name, one.cpu));
        if (one.kind === "remove") source.entries.delete(`unbound/${one.name}`);
        if (one.kind === "set" || one.kind === "remove") changes.mark({ kind: "unbound", name: one.name });
        if (one.kind === "report") await report(changes, book);
        if (one.kind === "restart") changes.restart();
        if (one.kind === "lose") {
          changes.next();
          changes.recorded(null);
        }
        if (one.kind === "late") {
          // A restart while a part is being recorded is not undone by the record.
          const part = changes.next();
          changes.restart();
          if (part !== null) changes.recorded(await book.take({ cluster: "one", reachable: true, ...part }));
          assert.equal(changes.next()?.since, null);
          changes.recorded(null);
        }
      }
      await report(changes, book);
      assert.deepEqual(book.reports.at(-1)?.capacity, capacityOf(source.all()));
    }),
  );
});

test("only entries that differ from the recorded ones are reported", async () => {
  const source = new Source();
  const changes = new CapacityChanges(source);
  const book = new CapacityBook();
  for (const name of ["a", "b", "c"]) source.entries.set(`unbound/${name}`, foreign(name, 1));
  await report(changes, book);
  for (const name of ["a", "b"]) changes.mark({ kind: "unbound", name });
  source.entries.set("unbound/b", foreign("b", 2));
  await report(changes, book);
  changes.mark({ kind: "unbound", name: "never there" });
  await report(changes, book);
  assert.deepEqual(book.sizes, [3, 1, 0]);
});
