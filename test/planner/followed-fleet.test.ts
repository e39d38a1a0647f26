import assert from "node:assert/strict";
import { test } from "node:test";
import type { Change } from "../../src/core/plan/facts/changes.ts";
import type { FleetRead } from "../../src/core/plan/facts/fleet-read.ts";
import type { CapacityEntry } from "../../src/core/plan/model/capacity-entry.ts";
import { FleetFollower } from "../../src/planner/fleet-follower.ts";
import { createFollowedFleet, IDLE_MS_MAX } from "../../src/planner/followed-fleet.ts";
import { cluster, NOW, nodes, queue } from "../core/plan/plan-world.ts";
import { MemoryStore } from "./memory-store.ts";

const SIGNAL = new AbortController().signal;

/** A clock whose sleeps the test ends. */
function sleepyClock() {
  const sleeping: { readonly ms: number; readonly wake: () => void; readonly signal: AbortSignal | undefined }[] = [];
  const sleep = (ms: number, signal?: AbortSignal) =>
    new Promise<void>((wake) => {
      sleeping.push({ ms, wake, signal });
      signal?.addEventListener("abort", () => wake(), { once: true });
    });
  return { sleeping, clock: { nowMs: () => NOW, sleep } };
}

function world() {
  return new MemoryStore({
    jobs: [],
    clusters: [cluster("east", { nodes: nodes(2, "h100") })],
    queues: [queue("q", { h100: 8 })],
  });
}

test("the state is dropped after some time without a question, and the next question loads it again", async () => {
  const { sleeping, clock } = sleepyClock();
  const store = world();
  let followed = 0;
  const followTakers = () => {
    followed += 1;
    return store;
  };
  const fleet = createFollowedFleet({ clock, followTakers });
  const clusters = () => fleet.read(({ planner }) => planner.clusterNames(), SIGNAL);
  assert.equal(followed, 0, "nobody has asked");
  for (let at = 0; at < 3; at++) assert.deepEqual(await clusters(), ["east"]);
  assert.equal(followed, 1);
  const [last, ...others] = sleeping.toReversed();
  assert.equal(last?.ms, IDLE_MS_MAX);
  assert.ok(
    others.every(({ signal }) => signal?.aborted),
    "each question ends the wait of the one before",
  );
  last?.wake();
  await new Promise((resolve) => setImmediate(resolve));
  assert.deepEqual(await clusters(), ["east"]);
  assert.equal(followed, 2);
  fleet.close();
  assert.ok(sleeping.every(({ signal }) => signal?.aborted));
});

test("after an error of the store, the next question continues", async () => {
  const store = world();
  const fleet = createFollowedFleet({ clock: sleepyClock().clock, followTakers: () => store });
  store.before = () => {
    throw new Error("away");
  };
  await assert.rejects(
    fleet.read(() => 1, SIGNAL),
    /away/,
  );
  store.before = () => undefined;
  assert.equal(await fleet.read(({ planner }) => planner.clusterNames().length, SIGNAL), 1);
});

function entry(at: number, gpus: number): CapacityEntry {
  const name = `n${at}`;
  const facts = { name, labels: {}, taints: [], unschedulable: false, allocatable: { gpu: 8 } };
  return { kind: "node", name, node: { ...facts, free: { gpu: gpus } }, members: [] };
}

function fullList(epoch: number, entries: readonly CapacityEntry[]): Change {
  const changes = entries.map((one) => ({ key: { kind: one.kind, name: one.name }, entry: one }));
  return { kind: "capacity", cluster: "east", epoch, since: null, sequence: 1, changes };
}

test("others have their turn while the list of a large cluster is applied, added and removed", async () => {
  const lists = [
    fullList(
      1,
      Array.from({ length: 2_000 }, (_, at) => entry(at, 8)),
    ),
    fullList(
      2,
      Array.from({ length: 500 }, (_, at) => entry(at + 1_800, 4)),
    ),
  ];
  const pauses: number[] = [];
  const hashes = await Promise.all(
    [true, false].map(async (isPausing) => {
      const reads = [...lists];
      const place = {
        incarnation: "",
        position: 0,
        loadedTo: null,
        limitsVersion: null,
        transaction: "",
        listed: "",
        serial: 1,
      };
      const readFleet = async (): Promise<FleetRead> => {
        const change = reads.shift();
        const changes = change === undefined ? [] : [change];
        return { restarts: reads.length === 1, changes, whole: [], callers: null, quotaEpoch: 1, place, more: false };
      };
      let paused = 0;
      const pause = async () => {
        paused += 1;
      };
      const follower = new FleetFollower({ readFleet, gangsOf: async () => [] }, isPausing ? { pause } : {});
      for (const _ of lists) {
        await follower.catchUp();
        if (isPausing) pauses.push(paused);
        paused = 0;
      }
      return follower.planner.hash();
    }),
  );
  assert.equal(hashes[0], hashes[1]);
  // 2,000 are added; then 1,800 are removed and 500 set.
  assert.deepEqual(pauses, [10, 11]);
});
