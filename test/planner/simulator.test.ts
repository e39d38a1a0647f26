import assert from "node:assert/strict";
import { test } from "node:test";
import { createSimulator } from "../../src/planner/simulator.ts";
import { cluster, job, NOW, nodes, planGang, queue, snapshot } from "../core/plan/plan-world.ts";
import { OWN_KINDS } from "../support/kinds.ts";
import { snapshotFleet } from "../support/snapshot-fleet.ts";

const SIGNAL = new AbortController().signal;
const worker = (name: string, of = "q") => job({ name, queue: of, roles: { Worker: { replicas: 1, gpus: 8 } } });

/** A simulator over one node, and the queues whose waiting gangs it read, in order. */
function simulator(settings: { before?: () => Promise<void>; waiting?: readonly string[] } = {}) {
  const reads: string[] = [];
  const world = snapshot({
    clusters: [cluster("east", { nodes: nodes(1, "h100") })],
    queues: ["q", "r"].map((of) => queue(of, { h100: 8 })),
  });
  const simulate = createSimulator({
    kinds: OWN_KINDS,
    fleet: snapshotFleet(
      async () => world,
      () => NOW,
    ),
    firstWaiting: async ({ queue: name }) => {
      reads.push(name);
      await settings.before?.();
      return (settings.waiting ?? []).map((one) => planGang(worker(one, name)));
    },
  });
  return { reads, simulate };
}

test("calls for one queue at the same time share its waiting gangs, which are read after they came", async () => {
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

test("a job is judged behind the waiting gangs of its queue, but for the one of its name", async () => {
  const { simulate } = simulator({ waiting: ["a"] });
  const verdicts = await Promise.all(["a", "z"].map(async (name) => (await simulate(worker(name), SIGNAL))?.verdict));
  assert.deepEqual(verdicts, ["FITS_NOW", "WAITS"]);
});

test("the waiting gangs of one queue are read at a time", async () => {
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
