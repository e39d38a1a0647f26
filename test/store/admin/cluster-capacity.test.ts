import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";
import fc from "fast-check";
import { type CapacityPlace, capacityPage, capacitySince } from "../../../src/adapters/store/admin/cluster-capacity.ts";
import type { Db } from "../../../src/adapters/store/db/db.ts";
import {
  type CapacityEntry,
  capacityOf,
  type EntryChange,
  type EntryKey,
  entryKeyText,
} from "../../../src/core/plan/model/capacity-entry.ts";
import { completeCapacity } from "../../support/complete-capacity.ts";
import { onEachDatabase } from "../../support/databases.ts";
import { freshStore, type TestStore } from "../db.ts";

onEachDatabase((openDb) => {
  let db: Db;
  let store: TestStore;
  before(async () => {
    db = await openDb();
  });
  after(() => db.close());
  beforeEach(async () => {
    store = (await freshStore(db)).store;
  });

  const node = (name: string, gpus: number): CapacityEntry => {
    const allocatable = { "nvidia.com/gpu": 8_000 };
    const facts = { name, labels: {}, taints: [], unschedulable: false, allocatable };
    return { kind: "node", name, node: { ...facts, free: { "nvidia.com/gpu": gpus * 1_000 } }, members: [] };
  };
  const set = (name: string, gpus: number): EntryChange => ({ key: { kind: "node", name }, entry: node(name, gpus) });
  const gone = (name: string): EntryChange => ({ key: { kind: "node", name }, entry: null });
  const change = (since: number | null, changes: readonly EntryChange[]) =>
    store.clusters.recordCapacity({ cluster: "east", reachable: true, since, changes });
  const complete = async (...entries: readonly CapacityEntry[]) =>
    (await store.clusters.recordCapacity(completeCapacity("east", entries))).epoch ?? assert.fail("not recorded");
  const recorded = async () => (await store.admin.getCluster("east"))?.capacity;

  /** Reads a cluster as a planner does: all pages, then the changes meanwhile. */
  class Reader {
    place: CapacityPlace | null = null;
    readonly entries = new Map<string, CapacityEntry>();

    async load(limit: number, between: () => Promise<unknown> = async () => {}): Promise<void> {
      this.entries.clear();
      this.place = null;
      let after: EntryKey | null = null;
      do {
        const page = await capacityPage(db, "east", { after, limit });
        assert.ok(page !== null);
        this.place ??= page.place;
        for (const entry of page.entries) this.entries.set(entryKeyText(entry), entry);
        after = page.next;
        await between();
      } while (after !== null);
    }

    /** False: everything has to be read again. */
    async follow(limit: number): Promise<boolean> {
      for (;;) {
        assert.ok(this.place !== null);
        const step = await capacitySince(db, "east", { place: this.place, limit });
        if (step === null || step === "behind") return false;
        for (const { key, entry } of step.changes) {
          if (entry === null) this.entries.delete(entryKeyText(key));
          else this.entries.set(entryKeyText(key), entry);
        }
        this.place = step.place;
        if (step.changes.length < limit) return true;
      }
    }
  }

  test("changes follow the complete report that is recorded, and no other", async () => {
    const first = await complete(node("a", 8), node("b", 8));
    assert.equal((await change(first, [set("a", 3), gone("b"), set("c", 1)])).epoch, first);
    assert.deepEqual(await recorded(), capacityOf([node("a", 3), node("c", 1)]));
    const second = await complete(node("a", 2));
    assert.deepEqual(await recorded(), capacityOf([node("a", 2)]));
    assert.deepEqual(await change(first, [set("a", 8)]), { epoch: null, changed: false });
    assert.deepEqual(await recorded(), capacityOf([node("a", 2)]));
    assert.equal((await change(second, [])).epoch, second);
  });

  test("an observer of a cluster that was forgotten and registered again starts with a complete report", async () => {
    const credentials = { kind: "sealed", text: "first" };
    const south = { name: "south", labels: {}, flavors: [], credentials };
    await store.clusters.register(south);
    const { epoch } = await store.clusters.recordCapacity(completeCapacity("south", [node("a", 8)]));
    await store.clusters.remove("south", true);
    await store.clusters.register(south);
    assert.equal((await store.admin.getCluster("south"))?.capacity, null);
    const late = { cluster: "south", reachable: true, since: epoch, changes: [set("a", 1)] } as const;
    assert.deepEqual(await store.clusters.recordCapacity(late), { epoch: null, changed: false });
    assert.equal((await store.admin.getCluster("south"))?.capacity, null);
  });

  test("names that a database cannot hold do no harm, even if they then are the same", async () => {
    const epoch = await complete(node("a\u0000", 1), node("a\ufffd", 2));
    await change(epoch, [set("a\u0000", 3)]);
    assert.equal((await recorded())?.nodes.length, 1);
    const reader = new Reader();
    await reader.load(1);
    assert.equal(reader.entries.size, 1);
  });

  test("a reader that missed nothing, much, or everything ends with what is recorded", async () => {
    const names = fc.constantFrom("a", "b", "c", "d", "e");
    const step = fc.oneof(
      { weight: 6, arbitrary: fc.record({ kind: fc.constant("set" as const), name: names, gpus: fc.nat(8) }) },
      { weight: 3, arbitrary: fc.record({ kind: fc.constant("gone" as const), name: names }) },
      {
        weight: 2,
        arbitrary: fc.record({ kind: fc.constant("follow" as const), limit: fc.integer({ min: 1, max: 4 }) }),
      },
      { weight: 1, arbitrary: fc.record({ kind: fc.constant("complete" as const), names: fc.uniqueArray(names) }) },
    );
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 25 }), fc.integer({ min: 1, max: 4 }), async (steps, limit) => {
        let epoch = await complete(node("a", 8), node("b", 8));
        const reader = new Reader();
        const missed = steps.filter(({ kind }) => kind === "set" || kind === "gone").slice(0, 3);
        const apply = async (one: (typeof steps)[number] | undefined) => {
          if (one?.kind === "set") await change(epoch, [set(one.name, one.gpus)]);
          if (one?.kind === "gone") await change(epoch, [gone(one.name)]);
          if (one?.kind === "complete") epoch = await complete(...one.names.map((name) => node(name, 8)));
          if (one?.kind === "follow" && !(await reader.follow(one.limit))) await reader.load(one.limit);
        };
        await reader.load(limit, () => apply(missed.pop()));
        for (const one of steps) await apply(one);
        if (!(await reader.follow(limit))) await reader.load(limit);
        assert.deepEqual(capacityOf(reader.entries.values()), await recorded());
      }),
      { numRuns: 25 },
    );
  });

  test("a reader that is further behind than removed entries are remembered reads everything again", async () => {
    const epoch = await complete(node("a", 8), node("b", 8));
    const reader = new Reader();
    await reader.load(10);
    await change(epoch, [gone("b")]);
    await change(
      epoch,
      Array.from({ length: 10_001 }, (_one, at) => set(`n${at}`, 8)),
    );
    assert.equal(await reader.follow(20_000), true, "nothing has been forgotten yet");
    const late = new Reader();
    await late.load(20_000);
    late.place = { epoch, sequence: 2 };
    await change(epoch, [gone("n0")]);
    assert.equal(await late.follow(20_000), false);
    const [removed] = await db.query<{ rows: number }>(
      "select count(*)::int as rows from cluster_capacity where entry is null",
    );
    assert.equal(removed?.rows, 1, "of the removed entries only the new one is remembered");
  });

  test("a program of the version before writes one document, which counts until an observer reports", async () => {
    await complete(node("a", 8));
    const old = { nodes: [], seen: [], unbound: [] };
    await db.query("update clusters set capacity = $1::json, observed_ms = 5 where name = 'east'", [
      JSON.stringify(old),
    ]);
    assert.deepEqual(await recorded(), old);
    await complete(node("a", 7));
    assert.deepEqual(await recorded(), capacityOf([node("a", 7)]));
  });
});
