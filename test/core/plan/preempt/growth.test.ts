import assert from "node:assert/strict";
import { test } from "node:test";
import type { Job } from "../../../../src/core/job/job.ts";
import type { PlanGang } from "../../../../src/core/plan/model/plan-gang.ts";
import {
  DEFAULT_POLICY,
  FAIR_SHARING_STRATEGIES,
  type QueuePolicy,
} from "../../../../src/core/plan/model/queue-policy.ts";
import type { PlanCluster } from "../../../../src/core/plan/model/snapshot.ts";
import type { FleetPlan } from "../../../../src/core/plan/round/run-round.ts";
import { stateOf } from "../../../support/load-snapshot.ts";
import {
  admission,
  amounts,
  cluster,
  job,
  NOW,
  node,
  planGang,
  queue,
  type SnapshotParts,
  snapshot,
} from "../plan-world.ts";

const FLAVORS = { "nvidia.com/gpu": "gpu/h100" };
const POOL = "gpu/h100";

type Running = {
  readonly name: string;
  readonly queue: string;
  /** It has so many members of one GPU each. */
  readonly has: number;
  readonly min: number;
  readonly priority?: number;
  readonly ranMs?: number;
  readonly shrinksTo?: number;
  readonly elastic?: boolean;
  /** The indexes of members that gave their tokens back. */
  readonly returned?: readonly number[];
  /** The rule of its admission with a part of its members. */
  readonly partial?: "RESTART";
  /** It asks for so many. Omitted: for those that it has. */
  readonly wants?: number;
};

/** A gang that runs with more members than its minimum. */
function runs({
  name,
  queue: queueName,
  has,
  min,
  priority = 0,
  ranMs = 100,
  elastic = true,
  shrinksTo,
  returned,
  partial,
  wants: requested = has,
}: Running): PlanGang {
  const live = {
    ...(returned === undefined ? {} : { returned: { Worker: returned } }),
    ...(partial === undefined ? {} : { partial }),
    cluster: "east",
    members: { Worker: has },
    flavors: FLAVORS,
    flavorLabels: { "nvidia.com/gpu": { gpu: "h100" } },
  };
  const made: Job = job({
    name,
    queue: queueName,
    priority,
    roles: { Worker: { replicas: requested, gpus: 1 } },
    minAvailable: min,
    admissions: [admission({ ...live, admitTimeMs: NOW - ranMs })],
  });
  const gang = planGang(made);
  const shrinks = shrinksTo === undefined ? {} : { shrinksTo: { Worker: shrinksTo } };
  return { ...gang, ask: { ...gang.ask, elastic }, askHash: `${gang.askHash} ${elastic}`, ...shrinks };
}

const waits = (name: string, queueName: string, gpus: number, priority = 0) =>
  job({ name, queue: queueName, priority, roles: { Worker: { replicas: 1, gpus } } });

/** `a preempts b (reason), c keeps 2 (reason)`, or who is admitted. */
function short({ admissions, preemptions }: FleetPlan): readonly string[] {
  return [
    ...admissions.map(({ jobUid }) => `${jobUid.slice(4)} admitted`),
    ...preemptions.map(({ planned, victims }) => {
      const gone = victims.map(({ jobUid, reason, keeps }) => {
        return `${jobUid.slice(4)}${keeps === undefined ? "" : ` keeps ${keeps["Worker"]}`} (${reason})`;
      });
      return `${planned.jobUid.slice(4)} preempts ${gone.join(", ")}`;
    }),
  ];
}

const policy = (parts: Partial<QueuePolicy>): QueuePolicy => ({ ...DEFAULT_POLICY, reserveAfterMs: 0, ...parts });
const reclaims = policy({ reclaimWithinTree: "ANY", withinQueue: "LOWER_PRIORITY" });

/** `lent` has 4 and borrows from `own`, which has 8. */
const tree = (used: Readonly<Record<string, number>>, parts: Partial<QueuePolicy> = {}) => [
  queue("all", { h100: 0 }, { policy: policy({}) }),
  queue("own", { h100: 8 }, { parent: "all", policy: reclaims, used: { [POOL]: used["own"] ?? 0 } }),
  queue("lent", { h100: 4 }, { parent: "all", policy: policy(parts), used: { [POOL]: used["lent"] ?? 0 } }),
];
const clusters = [cluster("east", { nodes: [node("big", "h100", { allocatable: amounts(64), free: amounts(40) })] })];

/** A node with 12 GPUs that `e` fills. So many of its first members are shown, on a node that is gone. */
function fullOf12(shown: number): readonly PlanCluster[] {
  const seen = Array.from({ length: shown }, (_, at) => ({
    jobUid: "uid-e",
    admission: 1,
    role: "worker",
    index: at,
  }));
  const full = node("full", "h100", { allocatable: amounts(12), free: amounts(12 - shown) });
  return [cluster("east", { capacity: { nodes: [full], seen, unbound: [] } })];
}

/** A gang that needs GPUs of that node. */
function besideUnseen({ shown, needs }: { readonly shown: number; readonly needs: number }): SnapshotParts {
  return {
    clusters: fullOf12(shown),
    waiting: [waits("a", "own", needs, 1)],
    admitted: [runs({ name: "e", queue: "own", has: 12, min: 2 })],
    queues: [queue("own", { h100: 99 }, { policy: reclaims })],
  };
}

const cases: Record<string, { readonly from: SnapshotParts; readonly made: readonly string[] }> = {
  "as many members as needed are taken of an elastic gang, and it keeps the others": {
    from: {
      waiting: [waits("a", "own", 3)],
      admitted: [runs({ name: "e", queue: "lent", has: 12, min: 2 })],
      queues: tree({ lent: 12 }),
    },
    made: ["a preempts e keeps 9 (InCohortReclamation)"],
  },
  "growth goes before whole gangs of a lower priority that were admitted later": {
    from: {
      waiting: [waits("a", "own", 2)],
      admitted: [
        runs({ name: "e", queue: "lent", has: 8, min: 4, priority: 5, ranMs: 900 }),
        runs({ name: "w", queue: "lent", has: 4, min: 4, priority: 0, ranMs: 100 }),
      ],
      queues: tree({ lent: 12 }),
    },
    made: ["a preempts e keeps 6 (InCohortReclamation)"],
  },
  "if all growth is too little, a whole gang goes, and growth that is not needed then stays": {
    from: {
      waiting: [waits("a", "own", 8)],
      admitted: [
        runs({ name: "e", queue: "lent", has: 4, min: 2, priority: 5, ranMs: 900 }),
        runs({ name: "w", queue: "lent", has: 8, min: 8, priority: 0, ranMs: 100 }),
      ],
      queues: tree({ lent: 12 }),
    },
    made: ["a preempts w (InCohortReclamation)"],
  },
  "an elastic gang whose growth is too little goes whole, named once": {
    from: {
      waiting: [waits("a", "own", 8)],
      admitted: [runs({ name: "e", queue: "lent", has: 12, min: 8 })],
      queues: tree({ lent: 12 }),
    },
    made: ["a preempts e (InCohortReclamation)"],
  },
  "a minimum run time protects the minimum of a gang, not its growth": {
    from: {
      waiting: [waits("a", "own", 3)],
      admitted: [runs({ name: "e", queue: "lent", has: 12, min: 8 })],
      queues: tree({ lent: 12 }, { minRuntimeReclaimMs: 1_000 }),
    },
    made: ["a preempts e keeps 9 (InCohortReclamation)"],
  },
  "a gang that was preempted often enough may still lose growth": {
    from: {
      waiting: [waits("a", "own", 3)],
      admitted: [runs({ name: "e", queue: "lent", has: 12, min: 8 })],
      queues: tree({ lent: 12 }, { maxPreemptions: 0 }),
    },
    made: ["a preempts e keeps 9 (InCohortReclamation)"],
  },
  "members of a gang that is not elastic are not taken": {
    from: {
      waiting: [waits("a", "own", 3)],
      admitted: [runs({ name: "e", queue: "lent", has: 12, min: 8, elastic: false })],
      queues: tree({ lent: 12 }),
    },
    made: ["a preempts e (InCohortReclamation)"],
  },
  "members that are given up already are waited for": {
    from: {
      waiting: [waits("a", "own", 3)],
      admitted: [runs({ name: "e", queue: "lent", has: 12, min: 2, shrinksTo: 9 })],
      queues: tree({ lent: 12 }),
    },
    made: [],
  },
  "two gangs do not take members of one gang in one round": {
    from: {
      waiting: [waits("a", "own", 3), waits("b", "own", 2)],
      admitted: [runs({ name: "e", queue: "lent", has: 12, min: 2 })],
      queues: tree({ lent: 12 }),
    },
    made: ["a preempts e keeps 9 (InCohortReclamation)"],
  },
  "within a queue, members of a lower priority are taken": {
    from: {
      waiting: [waits("a", "own", 2, 9)],
      admitted: [runs({ name: "e", queue: "own", has: 8, min: 1 }), runs({ name: "l", queue: "lent", has: 4, min: 4 })],
      queues: tree({ own: 8, lent: 4 }),
    },
    made: ["a preempts e keeps 6 (InClusterQueue)"],
  },
  "with fair shares, growth goes before whole gangs, too": {
    from: {
      waiting: [waits("a", "left", 2)],
      admitted: [
        runs({ name: "e", queue: "right", has: 4, min: 2, priority: 5, ranMs: 900 }),
        runs({ name: "w", queue: "right", has: 8, min: 8, priority: 0, ranMs: 100 }),
      ],
      queues: [
        queue("all", { h100: 12 }, { policy: policy({ fairSharing: FAIR_SHARING_STRATEGIES }) }),
        queue("left", { h100: 0 }, { parent: "all", policy: reclaims }),
        queue("right", { h100: 0 }, { parent: "all", policy: reclaims, used: { [POOL]: 12 } }),
      ],
    },
    made: ["a preempts e keeps 2 (InCohortFairSharing)"],
  },
  "a gang is admitted into the quota and the room that members of others gave back": {
    from: {
      clusters: fullOf12(1),
      waiting: [waits("a", "own", 8)],
      admitted: [
        runs({ name: "e", queue: "own", has: 9, min: 9, elastic: false, returned: [1, 2, 3, 4, 5, 6, 7, 8] }),
        runs({ name: "f", queue: "own", has: 3, min: 3, elastic: false }),
      ],
      queues: [queue("own", { h100: 12 }, { used: { [POOL]: 4 } })],
    },
    made: ["a admitted"],
  },
  "members that gave their tokens back are not those that a node still shows": {
    from: {
      clusters: fullOf12(1),
      waiting: [waits("a", "own", 4), waits("b", "own", 3)],
      admitted: [runs({ name: "e", queue: "own", has: 12, min: 12, elastic: false, returned: [0, 9, 10, 11] })],
      queues: [queue("own", { h100: 99 }, { policy: policy({}) })],
    },
    made: ["b admitted"],
  },
  "a victim gives what it holds, without what its members gave back": {
    from: {
      waiting: [waits("a", "own", 4)],
      admitted: [
        runs({ name: "e", queue: "lent", has: 6, min: 6, ranMs: 100, returned: [0, 1, 2, 3] }),
        runs({ name: "w", queue: "lent", has: 6, min: 6, ranMs: 900 }),
      ],
      queues: tree({ own: 4, lent: 8 }),
    },
    made: ["a preempts w (InCohortReclamation)"],
  },
  "nothing is taken of the growth of a gang that gave tokens back": {
    from: {
      waiting: [waits("a", "own", 3)],
      admitted: [runs({ name: "e", queue: "lent", has: 12, min: 2, returned: [0] })],
      queues: tree({ own: 1, lent: 11 }),
    },
    made: ["a preempts e (InCohortReclamation)"],
  },
  "members that are given up are waited for if those that hold tokens are enough": {
    from: {
      waiting: [waits("a", "own", 2)],
      admitted: [runs({ name: "e", queue: "lent", has: 12, min: 2, shrinksTo: 9, returned: [0, 10] })],
      queues: tree({ own: 2, lent: 10 }),
    },
    made: [],
  },
  "members that are given up count only if they hold tokens": {
    from: {
      waiting: [waits("a", "own", 3)],
      admitted: [runs({ name: "e", queue: "lent", has: 12, min: 2, shrinksTo: 9, returned: [0, 10] })],
      queues: tree({ own: 2, lent: 10 }),
    },
    made: ["a preempts e (InCohortReclamation)"],
  },
  "a gang grows by the members that it lacks, and not by those that have ended": {
    from: {
      waiting: [waits("a", "own", 1)],
      admitted: [runs({ name: "e", queue: "own", has: 4, min: 4, wants: 6, elastic: false, returned: [0, 1] })],
      queues: [queue("own", { h100: 5 }, { used: { [POOL]: 2 } })],
    },
    made: ["e admitted", "a admitted"],
  },
  "a gang that gave tokens back, and would restart if it grew, does not grow": {
    from: {
      waiting: [waits("a", "own", 1)],
      admitted: [
        runs({ name: "e", queue: "own", has: 4, min: 4, wants: 6, elastic: false, returned: [0], partial: "RESTART" }),
        runs({ name: "f", queue: "own", has: 4, min: 4, wants: 5, elastic: false, partial: "RESTART" }),
      ],
      queues: [queue("own", { h100: 20 }, { used: { [POOL]: 7 } })],
    },
    made: ["f admitted", "a admitted"],
  },
  "if nodes lack, members are taken that no node shows yet": {
    from: besideUnseen({ shown: 0, needs: 3 }),
    made: ["a preempts e keeps 9 (InClusterQueue)"],
  },
  "members that are shown count for the minimum, and of the others no more are kept than it needs": {
    from: besideUnseen({ shown: 1, needs: 10 }),
    made: ["a preempts e keeps 2 (InClusterQueue)"],
  },
  "an elastic gang that no node shows yet goes whole if its growth is too little": {
    from: besideUnseen({ shown: 1, needs: 11 }),
    made: ["a preempts e (InClusterQueue)"],
  },
};

for (const [name, { from, made }] of Object.entries(cases)) {
  test(name, () => {
    const state = stateOf(snapshot({ clusters, ...from }));
    assert.deepEqual(short(state.round(NOW, { admissionsMax: Number.POSITIVE_INFINITY })), made);
  });
}
