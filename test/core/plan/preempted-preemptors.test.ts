import assert from "node:assert/strict";
import { test } from "node:test";
import {
  DEFAULT_POLICY,
  FAIR_SHARING_STRATEGIES,
  type QueuePolicy,
} from "../../../src/core/plan/model/queue-policy.ts";
import type { PlanQueue } from "../../../src/core/plan/model/snapshot.ts";
import { playToRest, RESOURCE, RestFleet, type RestGang } from "./rest-world.ts";

const queueOf = (name: string, parent: string | null, nominal: number, policy: Partial<QueuePolicy>): PlanQueue => ({
  name,
  parent,
  strategy: "BEST_EFFORT_FIFO",
  quotas: [{ flavor: "gpu/h100", resource: RESOURCE, nominal }],
  policy: { ...DEFAULT_POLICY, reserveAfterMs: 0, reclaimWithinTree: "ANY", withinQueue: "LOWER_PRIORITY", ...policy },
});

/** A queue with quotas of H100 and L4, and of A100 if a third one is given. */
const withFlavors = (
  name: string,
  parent: string | null,
  nominals: readonly number[],
  policy: Partial<QueuePolicy> = {},
): PlanQueue => ({
  ...queueOf(name, parent, 0, policy),
  quotas: nominals.map((nominal, at) => {
    return { flavor: `gpu/${["h100", "l4", "a100"][at]}`, resource: RESOURCE, nominal };
  }),
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
  assert.match(fleet.wordsOf("c4"), /it was preempted, .* may preempt others by its final share alone, until a job/);
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

/** Submits gangs, each one once the world is at rest. The last one is answered. */
function submitInTurn(fleet: RestFleet, gangs: Readonly<Record<string, Omit<RestGang, "uid" | "createTimeMs">>>) {
  let played = playToRest(fleet);
  for (const [uid, of] of Object.entries(gangs)) {
    fleet.submit({ uid, createTimeMs: fleet.gangs.size, ...of });
    played = playToRest(fleet);
  }
  return played;
}

test("without fair sharing it takes nothing of what a queue owns while its own queue borrows", () => {
  const fleet = new RestFleet({
    queues: [
      queueOf("all", null, 2, { fairSharing: null }),
      queueOf("low", "all", 3, {}),
      queueOf("high", "all", 0, { borrowWithin: { policy: "LOWER_PRIORITY", maxPriority: null } }),
    ],
  });
  // `l1` is within the quota of its queue once `l4` is gone, and takes it back.
  const { fault } = submitInTurn(fleet, {
    l1: { queue: "low", size: 1, priority: 1 },
    l4: { queue: "low", size: 4, priority: 2 },
    h5: { queue: "high", size: 5, priority: 3 },
  });
  assert.deepEqual([fault, fleet.running], [null, "l1:1:gpu/h100 l4:4:gpu/h100"]);
  assert.equal(fleet.preempted, 3, "h5 has taken once, and l1 has taken back");
});

test("with fair sharing it takes nothing of what a queue above the victim owns", () => {
  const fleet = new RestFleet({
    queues: [
      withFlavors("all", null, [1, 4], { fairSharing: FAIR_SHARING_STRATEGIES }),
      withFlavors("team", "all", [1, 0]),
      withFlavors("alpha", "team", [1, 0]),
      withFlavors("beta", "all", [0, 0]),
    ],
  });
  // Of the two H100 of its team, alpha uses one without `a2`. So `a0` takes back the other one from `b2`.
  const { fault } = submitInTurn(fleet, {
    a4: { queue: "alpha", size: 4, priority: 9 },
    a1: { queue: "alpha", size: 1, priority: 9 },
    a2: { queue: "alpha", size: 2, priority: 1 },
    a0: { queue: "alpha", size: 1, priority: 0 },
    b2: { queue: "beta", size: 2, priority: 0 },
  });
  assert.deepEqual([fault, fleet.running], [null, "a1:1:gpu/h100 a2:2:gpu/h100 a4:4:gpu/l4"]);
});

test("it counts gangs of its own queue in its final share that run again with another flavor", () => {
  const fleet = new RestFleet({
    queues: [
      withFlavors("all", null, [6, 2, 2], { fairSharing: FAIR_SHARING_STRATEGIES }),
      queueOf("beta", "all", 0, {}),
      withFlavors("gamma", "all", [0, 0, 0], {
        fungibility: { whenCanBorrow: "MAY_STOP_SEARCH", whenCanPreempt: "MAY_STOP_SEARCH", preference: null },
      }),
    ],
  });
  submitInTurn(fleet, {
    b4: { queue: "beta", size: 4, priority: 2 },
    c3: { queue: "gamma", size: 2, heads: 1, priority: 2 },
    c2: { queue: "gamma", size: 2, priority: 0 },
    b1: { queue: "beta", size: 1, priority: 1 },
  });
  assert.equal(fleet.running, "b1:1:gpu/h100 b4:4:gpu/h100 c2:2:gpu/a100 c3:2:gpu/h100+gpu/l4");
  // `c1` takes `c3`. Without `c2`, `c3` has a final share of 4, as `b1` has. But `c2` would run again, on L4.
  const { fault } = submitInTurn(fleet, { c1: { queue: "gamma", size: 1, priority: 3 } });
  assert.deepEqual([fault, fleet.running], [null, "b1:1:gpu/h100 b4:4:gpu/h100 c1:1:gpu/h100 c3:2:gpu/l4+gpu/a100"]);
});

test("it takes no nodes of what a queue owns, although its own queue stays within its quota", () => {
  const fleet = new RestFleet(
    {
      queues: [
        queueOf("all", null, 4, { fairSharing: null }),
        queueOf("alpha", "all", 2, {}),
        queueOf("beta", "all", 4, {}),
      ],
    },
    { rooms: { east: { h100: 5 } } },
  );
  // The quotas promise 6 to two owners, and there are 5.
  const { fault } = submitInTurn(fleet, {
    b1: { queue: "beta", size: 1, priority: 1 },
    a4: { queue: "alpha", size: 4, priority: 3 },
    a2: { queue: "alpha", size: 2, priority: 2 },
    b4: { queue: "beta", size: 4, priority: 3 },
  });
  assert.deepEqual([fault, fleet.running], [null, "a4:4:gpu/h100 b1:1:gpu/h100"]);
});

test("with fair sharing it takes no nodes of what a queue owns either", () => {
  const fleet = new RestFleet(
    {
      queues: [
        withFlavors("all", null, [0, 1], { fairSharing: FAIR_SHARING_STRATEGIES }),
        withFlavors("team", "all", [0, 3]),
        ...[
          withFlavors("one", "team", [1, 0]),
          withFlavors("two", "team", [2, 0]),
          withFlavors("four", "team", [4, 2]),
        ],
        withFlavors("other", "all", [3, 1]),
      ],
    },
    { rooms: { east: { h100: 8, l4: 6 } } },
  );
  const gangs: readonly (readonly [queue: string, size: number, heads: number])[] = [
    ["two", 1, 2],
    ["one", 1, 2],
    ["four", 1, 0],
    ["other", 3, 2],
    ["two", 4, 2],
  ];
  for (const [at, [queue, size, heads]] of gangs.entries()) {
    fleet.submit({ uid: `g${at}`, queue, size, heads, priority: 0, createTimeMs: 0 });
  }
  const { fault } = submitInTurn(fleet, { last: { queue: "other", size: 1, heads: 2, priority: 0 } });
  const ran = "g0:1:gpu/h100 g1:1:gpu/h100 g2:1:gpu/h100 g4:4:gpu/l4";
  assert.deepEqual([fault, fleet.running], [null, ran]);
  assert.equal(fleet.preempted, 4, "`last` has taken two gangs once, and the team has taken back");
});

test("a nominee whose place another gang takes counts as one that was preempted", () => {
  const fleet = new RestFleet(
    {
      queues: [
        queueOf("all", null, 0, { fairSharing: null }),
        queueOf("high", "all", 1, {
          ...{ withinQueue: "NEVER", reclaimWithinTree: "LOWER_PRIORITY" },
          borrowWithin: { policy: "LOWER_PRIORITY", maxPriority: null },
        }),
        queueOf("low", "all", 3, {}),
      ],
    },
    { drainRounds: 2 },
  );
  // `h4` takes `l3`, and `h2` takes its place, although it was preempted. `l3` takes back, and runs a second time.
  submitInTurn(fleet, {
    h2: { queue: "high", size: 2, priority: 2 },
    l1: { queue: "low", size: 1, priority: 0 },
    h4: { queue: "high", size: 1, heads: 1, priority: 2 },
    l3: { queue: "low", size: 3, priority: 1 },
  });
  const { fault } = playToRest(fleet);
  assert.deepEqual([fault, fleet.running], [null, "l1:1:gpu/h100 l3:3:gpu/h100"]);
});
