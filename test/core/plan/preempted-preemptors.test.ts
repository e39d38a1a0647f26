import assert from "node:assert/strict";
import { test } from "node:test";
import {
  DEFAULT_POLICY,
  FAIR_SHARING_STRATEGIES,
  type QueuePolicy,
} from "../../../src/core/plan/model/queue-policy.ts";
import type { PlanQueue } from "../../../src/core/plan/model/snapshot.ts";
import { playToRest, RESOURCE, RestFleet } from "./rest-world.ts";

const queueOf = (name: string, parent: string | null, nominal: number, policy: Partial<QueuePolicy>): PlanQueue => ({
  name,
  parent,
  strategy: "BEST_EFFORT_FIFO",
  quotas: [{ flavor: "gpu/h100", resource: RESOURCE, nominal }],
  policy: { ...DEFAULT_POLICY, reserveAfterMs: 0, reclaimWithinTree: "ANY", withinQueue: "LOWER_PRIORITY", ...policy },
});

/** A queue with quotas of H100 and L4. */
const withFlavors = (
  name: string,
  parent: string | null,
  [h100, l4]: readonly [number, number],
  policy: Partial<QueuePolicy> = {},
): PlanQueue => ({
  ...queueOf(name, parent, 0, policy),
  quotas: [
    { flavor: "gpu/h100", resource: RESOURCE, nominal: h100 },
    { flavor: "gpu/l4", resource: RESOURCE, nominal: l4 },
  ],
});

const QUEUES = [
  queueOf("all", null, 7, { fairSharing: FAIR_SHARING_STRATEGIES }),
  queueOf("beta", "all", 0, {}),
  queueOf("gamma", "all", 0, { weight: 2 }),
];

/** `c4` was preempted for `c1`. By its initial share it could preempt `b3`: 5 / 2 is below 3. */
function withPreempted(): RestFleet {
  const fleet = new RestFleet({ queues: QUEUES });
  fleet.submit({ uid: "b3", queue: "beta", size: 3, priority: 0, createTimeMs: 1 });
  fleet.submit({ uid: "c4", queue: "gamma", size: 4, priority: 0, createTimeMs: 1 });
  playToRest(fleet);
  fleet.submit({ uid: "c1", queue: "gamma", size: 1, priority: 1, createTimeMs: 2 });
  playToRest(fleet);
  assert.equal(fleet.running, "b3:3:gpu/h100 c1:1:gpu/h100");
  return fleet;
}

test("a gang that was preempted takes by its final share alone, and is told so", () => {
  const fleet = withPreempted();
  assert.match(fleet.wordsOf("c4"), /it was preempted, so it may preempt others by its final share alone, until a job/);
});

test("it still does once another planner has loaded the state", () => {
  const fleet = withPreempted();
  fleet.reload();
  playToRest(fleet);
  assert.equal(fleet.running, "b3:3:gpu/h100 c1:1:gpu/h100");
  assert.match(fleet.wordsOf("c4"), /by its final share alone/);
});

const CHANGES: Readonly<Record<string, (fleet: RestFleet) => void>> = {
  "a gang of its tree is submitted": (fleet) => {
    fleet.submit({ uid: "b9", queue: "beta", size: 9, priority: 0, createTimeMs: 3 });
  },
  "a gang of its tree gets another size": (fleet) => {
    fleet.submit({ uid: "c4", queue: "gamma", size: 4, min: 4, priority: 0, createTimeMs: 1 });
  },
  "a policy of its tree changes": (fleet) => fleet.setQueue(queueOf("beta", "all", 0, { maxPreemptions: 9 })),
  "a quota of its tree changes": (fleet) =>
    fleet.setQueue(queueOf("all", null, 6, { fairSharing: FAIR_SHARING_STRATEGIES })),
};
for (const [name, change] of Object.entries(CHANGES)) {
  for (const reloads of [false, true]) {
    const where = reloads ? ", also for a planner that loads later" : "";
    test(`it takes by its initial share again once ${name}${where}`, () => {
      const fleet = withPreempted();
      change(fleet);
      if (reloads) fleet.reload();
      playToRest(fleet);
      assert.match(fleet.running, /^c1:1:gpu\/h100 c4:4:gpu\/h100$/);
    });
  }
}

test("it takes by its initial share again once a gang of its tree has ended", () => {
  const fleet = new RestFleet({ queues: QUEUES });
  fleet.submit({ uid: "b9", queue: "beta", size: 9, priority: 0, createTimeMs: 0 });
  fleet.submit({ uid: "b3", queue: "beta", size: 3, priority: 0, createTimeMs: 1 });
  fleet.submit({ uid: "c4", queue: "gamma", size: 4, priority: 0, createTimeMs: 1 });
  playToRest(fleet);
  fleet.submit({ uid: "c1", queue: "gamma", size: 1, priority: 1, createTimeMs: 2 });
  playToRest(fleet);
  fleet.end("b9");
  playToRest(fleet);
  assert.equal(fleet.running, "c1:1:gpu/h100 c4:4:gpu/h100");
});

test("without fair sharing it takes no gang that uses only its own quota, although its queue borrows another", () => {
  const fleet = new RestFleet(
    {
      queues: [
        withFlavors("all", null, [5, 9], { fairSharing: null }),
        withFlavors("team", "all", [2, 0]),
        withFlavors("low", "team", [1, 1]),
        withFlavors("high", "all", [0, 0], { borrowWithin: { policy: "LOWER_PRIORITY", maxPriority: null } }),
      ],
    },
    { rooms: { north: { h100: 3, l4: 4 } } },
  );
  fleet.submit({ uid: "own", queue: "low", size: 3, priority: 0, createTimeMs: 1 });
  playToRest(fleet);
  fleet.submit({ uid: "lent", queue: "low", size: 3, priority: 9, createTimeMs: 2 });
  playToRest(fleet);
  fleet.submit({ uid: "taker", queue: "high", size: 3, heads: 1, priority: 1, createTimeMs: 3 });
  playToRest(fleet);
  assert.deepEqual([playToRest(fleet).fault, fleet.running], [null, "lent:3:gpu/l4 own:3:gpu/h100"]);
  assert.equal(fleet.preempted, 2, "the taker has taken once, and `own` has taken back its quota");
});
