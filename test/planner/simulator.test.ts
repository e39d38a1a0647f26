import assert from "node:assert/strict";
import { test } from "node:test";
import { createSimulator } from "../../src/planner/simulator.ts";
import { cluster, job, NOW, nodes, queue, snapshot } from "../core/plan-world.ts";
import { OWN_KINDS } from "../support/kinds.ts";

const SIGNAL = new AbortController().signal;
const worker = (name: string, of = "q") => job({ name, queue: of, roles: { Worker: { replicas: 1, gpus: 8 } } });

/** A simulator over one node, and the queues that it read, in order. */
function simulator(settings: { before?: () => Promise<void> } = {}) {
  const reads: string[] = [];
  const simulate = createSimulator({
    clock: { nowMs: () => NOW },
    kinds: OWN_KINDS,
    snapshotOfQueue: async ({ queue: name }) => {
      reads.push(name);
      await settings.before?.();
      return snapshot({
        clusters: [cluster("east", { nodes: nodes(1, "h100") })],
        queues: ["q", "r"].map((of) => queue(of, { h100: 8 })),
      });
    },
  });
  return { reads, simulate };
}

test("calls for one queue that wait at the same time share a snapshot that is read after they came", async () => {
  const { reads, simulate } = simulator();
  const found = await Promise.all(["a", "b", "c"].map((name) => simulate(worker(name), SIGNAL)));
  assert.deepEqual(
    found.map((one) => [one?.verdict, one?.admission?.jobUid]),
    ["a", "b", "c"].map((name) => ["FITS_NOW", `uid-${name}`]),
  );
  assert.deepEqual(reads, ["q"]);
  await simulate(worker("d"), SIGNAL);
  assert.deepEqual(reads, ["q", "q"]);
});

test("one snapshot is read at a time, whatever the queue", async () => {
  let reading = 0;
  let most = 0;
  const before = async () => {
    reading += 1;
    most = Math.max(most, reading);
    await new Promise((resolve) => setImmediate(resolve));
    reading -= 1;
  };
  const { reads, simulate } = simulator({ before });
  await Promise.all(["q", "r"].map((name) => simulate(worker(name, name), SIGNAL)));
  assert.deepEqual([reads.sort(), most], [["q", "r"], 1]);
});

test("nothing is read for a caller that has left", async () => {
  const { reads, simulate } = simulator();
  assert.equal(await simulate(worker("a"), AbortSignal.abort()), null);
  assert.deepEqual(reads, []);
});
