import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";
import { rememberedResources } from "../../../src/adapters/store/admin/node-resources.ts";
import type { Db } from "../../../src/adapters/store/db/db.ts";
import type { CapacityEntry } from "../../../src/core/plan/model/capacity-entry.ts";
import { completeCapacity } from "../../support/complete-capacity.ts";
import { onEachDatabase } from "../../support/databases.ts";
import { freshStore, type TestStore } from "../db.ts";

onEachDatabase((openDb) => {
  let db: Db;
  let store: TestStore;
  let nowMs = 0;
  let read: ReturnType<typeof rememberedResources>;
  before(async () => {
    db = await openDb();
  });
  after(() => db.close());
  beforeEach(async () => {
    store = (await freshStore(db)).store;
    nowMs = 10_000;
    read = rememberedResources(db, { nowMs: () => nowMs });
  });

  const node = (name: string, ...resources: readonly string[]): CapacityEntry => {
    const allocatable = Object.fromEntries(resources.map((resource) => [resource, 1_000]));
    const facts = { name, labels: {}, taints: [], unschedulable: false, allocatable, free: allocatable };
    return { kind: "node", name, node: facts, members: [] };
  };
  const observe = (cluster: string, ...entries: readonly CapacityEntry[]) =>
    store.clusters.recordCapacity(completeCapacity(cluster, entries));
  /** The resources as they are now, in order. */
  const fresh = async () => {
    const found = await rememberedResources(db, { nowMs: () => nowMs })(["any"]);
    return found === null ? null : [...found].sort();
  };

  test("the resources of nodes are known once every cluster was observed", async () => {
    assert.equal(await fresh(), null);
    await observe("east", node("a", "cpu", "nvidia.com/gpu"), node("b", "cpu"));
    assert.equal(await fresh(), null, "west may have any");
    await observe("west", { kind: "unbound", name: "n/p", pod: { podSpec: {}, requests: { "x/y": 1 } } });
    assert.deepEqual(await fresh(), ["cpu", "nvidia.com/gpu"]);
    await observe("west", node("w", "amd.com/gpu"), { kind: "node", name: "gone", node: null, members: [] });
    assert.deepEqual(await fresh(), ["amd.com/gpu", "cpu", "nvidia.com/gpu"]);
    const forget = (name: string) => db.query("update clusters set forgotten_ms = 1 where name = $1", [name]);
    await forget("west");
    assert.deepEqual(await fresh(), ["cpu", "nvidia.com/gpu"]);
    await forget("east");
    assert.equal(await fresh(), null, "without a cluster");
  });

  test("nodes that a program of the version before has recorded count", async () => {
    await observe("west");
    const nodes = JSON.stringify({ nodes: [{ allocatable: { "old.com/gpu": 1 } }], seen: [], unbound: [] });
    await db.query("update clusters set capacity = $1::json, observed_ms = 1 where name = 'east'", [nodes]);
    assert.deepEqual(await fresh(), ["old.com/gpu"]);
  });

  test("nodes are read again for a resource that none had, after a second", async () => {
    await observe("east", node("a", "cpu"));
    await observe("west");
    assert.deepEqual([...((await read(["cpu"])) ?? [])], ["cpu"]);
    await observe("west", node("w", "amd.com/gpu"));
    assert.equal((await read(["amd.com/gpu"]))?.has("amd.com/gpu"), false, "within the second");
    nowMs += 1_000;
    assert.equal((await read(["cpu"]))?.has("amd.com/gpu"), false, "what is known is not read again");
    assert.equal((await read(["amd.com/gpu"]))?.has("amd.com/gpu"), true);
  });

  test("the facts for a job's check have them", async () => {
    await observe("east", node("a", "cpu"));
    await observe("west");
    const { nodeResources } = await store.intake.facts({ namespace: "any" });
    assert.deepEqual([...((await nodeResources(["x/y"])) ?? [])], ["cpu"]);
  });
});
