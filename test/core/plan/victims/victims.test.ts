import assert from "node:assert/strict";
import { test } from "node:test";
import {
  DEFAULT_POLICY,
  FAIR_SHARING_STRATEGIES,
  type QueuePolicy,
} from "../../../../src/core/plan/model/queue-policy.ts";
import { QuotaState } from "../../../../src/core/plan/usage/quota-state.ts";
import type { RunningGang, VictimSearch } from "../../../../src/core/plan/victims/running-gang.ts";
import { victimsFor } from "../../../../src/core/plan/victims/victims.ts";
import type { WaitingGangs } from "../../../../src/core/plan/victims/waiting-gangs.ts";

const POOL = "gpu/h100";
const OTHER = "gpu/a100";

type More = {
  readonly priority?: number;
  readonly project?: string;
  readonly uses?: Readonly<Record<string, number>>;
  readonly isGrowth?: true;
};

type Gang = readonly [uid: string, queue: string, gpus: number, more?: More];

type Quotas = number | Readonly<Record<string, number>>;

type Case = {
  /** By name: the queue above, the quota of one pool or of each, and what differs from the default policy. */
  readonly queues: Readonly<
    Record<string, readonly [parent: string | null, nominal: Quotas, policy?: Partial<QueuePolicy>]>
  >;
  readonly gangs: readonly Gang[];
  readonly taker: readonly [queue: string, gpus: number];
  readonly wasPreempted?: true;
  readonly projectLimit?: number;
  readonly search?: Partial<VictimSearch>;
  readonly victims: Readonly<Record<string, string>>;
};

const OWN = { withinQueue: "LOWER_PRIORITY" } as const;
const RECLAIM = { reclaimWithinTree: "ANY" } as const;
const BY_INITIAL = FAIR_SHARING_STRATEGIES.slice(1);
const BY_FINAL = FAIR_SHARING_STRATEGIES.slice(0, 1);

/** Two queues without a quota that share what their root has. */
const fairTree = (nominal: number, fairSharing: QueuePolicy["fairSharing"]): Case["queues"] => ({
  all: [null, nominal, { fairSharing }],
  alpha: ["all", 0, { ...OWN, ...RECLAIM }],
  beta: ["all", 0, { ...OWN, ...RECLAIM }],
});

/** Two branches that own half of one flavor each, and borrow the other one. */
const TWO_FLAVORS: Case["queues"] = {
  all: [null, { [POOL]: 0, [OTHER]: 8 }, { fairSharing: BY_INITIAL }],
  l: ["all", { [POOL]: 4, [OTHER]: 0 }],
  r: ["all", { [POOL]: 4, [OTHER]: 0 }],
  ll: ["l", { [POOL]: 0, [OTHER]: 0 }, RECLAIM],
  rl: ["r", { [POOL]: 0, [OTHER]: 0 }, RECLAIM],
};

/** A gang that waits beside the preemptor. */
const waitingOf = (gpus: number): WaitingGangs => {
  const amounts = new Map([[POOL, gpus]]);
  const choices = [{ all: amounts, fewest: amounts }];
  return { choices, count: 1, priority: 0, createTimeMs: 0, wasPreempted: false };
};

const ALONE = { solo: [null, 4, OWN] } as const;

/** `low` borrows 2 of 5. Without `l4` it uses less than it owns. */
const OWNED: Case["queues"] = {
  all: [null, 2],
  low: ["all", 3],
  high: ["all", 0, { ...RECLAIM, borrowWithin: { policy: "LOWER_PRIORITY", maxPriority: null } }],
};
const LENT_AND_OWNED: readonly Gang[] = [
  ["l1", "low", 1],
  ["l4", "low", 4],
];

const OWN_AND_OTHERS: readonly Gang[] = [
  ["a2", "alpha", 2],
  ["b1", "beta", 1],
  ["b4", "beta", 4],
];

const cases: Readonly<Record<string, Case>> = {
  "of gangs that are equal but for their uids, the first of these goes": {
    queues: ALONE,
    gangs: [
      ["a", "solo", 2],
      ["b", "solo", 2],
    ],
    taker: ["solo", 2],
    victims: { a: "InClusterQueue" },
  },
  "the caller may prefer one of them": {
    queues: ALONE,
    gangs: [
      ["a", "solo", 2],
      ["b", "solo", 2],
    ],
    taker: ["solo", 2],
    search: { prefer: (a, b) => Number(b.uid === "b") - Number(a.uid === "b") },
    victims: { b: "InClusterQueue" },
  },
  "a gang that the caller spares stays": {
    queues: ALONE,
    gangs: [
      ["a", "solo", 2],
      ["b", "solo", 2],
    ],
    taker: ["solo", 2],
    search: { mayTake: ({ uid }) => uid !== "a" },
    victims: { b: "InClusterQueue" },
  },
  "more gangs go until what the caller demands holds too, and those that it does not need are put back": {
    queues: ALONE,
    gangs: [
      ["a", "solo", 2],
      ["b", "solo", 1],
      ["c", "solo", 1],
    ],
    taker: ["solo", 1],
    search: { fitsWithout: (gone) => gone.some(({ gang }) => gang.uid === "c") },
    victims: { c: "InClusterQueue" },
  },
  "nobody goes if what the caller demands never holds": {
    queues: ALONE,
    gangs: [["a", "solo", 4]],
    taker: ["solo", 1],
    search: { fitsWithout: () => false },
    victims: {},
  },
  "the limit of the preemptor's project must hold too": {
    queues: ALONE,
    gangs: [
      ["a", "solo", 2, { project: "other" }],
      ["b", "solo", 2],
    ],
    taker: ["solo", 2],
    projectLimit: 2,
    victims: { b: "InClusterQueue" },
  },
  "a queue takes back its quota from the gangs of the queue above it that use more than that queue has itself": {
    queues: { lab: [null, 2], vision: ["lab", 4, RECLAIM] },
    gangs: [
      ["a", "lab", 2],
      ["b", "lab", 4, { priority: 9 }],
    ],
    taker: ["vision", 4],
    victims: { b: "InCohortReclamation" },
  },
  "the gangs of the queue above stay while they use no more than that queue has itself": {
    queues: { lab: [null, 4], vision: ["lab", 4, RECLAIM], speech: ["lab", 0] },
    gangs: [
      ["a", "lab", 4],
      ["b", "speech", 4, { priority: 9 }],
    ],
    taker: ["vision", 4],
    victims: { b: "InCohortReclamation" },
  },
  "a queue with queues below it takes back its own quota from them": {
    queues: { lab: [null, 4, RECLAIM], vision: ["lab", 2] },
    gangs: [
      ["a", "vision", 2],
      ["b", "vision", 4, { priority: 9 }],
    ],
    taker: ["lab", 4],
    victims: { b: "InCohortReclamation" },
  },
  "a gang is not taken by a share that holds only while gangs of the own queue are gone that would run again at once": {
    queues: fairTree(7, BY_INITIAL),
    gangs: [
      ["a2", "alpha", 2],
      ["b5", "beta", 5],
    ],
    taker: ["alpha", 4],
    victims: {},
  },
  "gangs that were kept before are asked again once gangs of the own queue have made their end legal": {
    queues: fairTree(9, BY_FINAL),
    gangs: [
      ["a2", "alpha", 2],
      ["b2", "beta", 2],
      ["c2", "beta", 2],
      ["b3", "beta", 3],
    ],
    taker: ["alpha", 4],
    victims: { a2: "InClusterQueue", b2: "InCohortFairSharing" },
  },
  "by its initial share a gang takes nothing if what else of its queue then fits would raise its share too far": {
    queues: fairTree(5, BY_INITIAL),
    gangs: [["b5", "beta", 5]],
    taker: ["alpha", 3],
    search: { others: () => [waitingOf(2)] },
    victims: {},
  },
  "it takes what leaves its share below that of the others with all that fits": {
    queues: fairTree(5, BY_INITIAL),
    gangs: [["b5", "beta", 5]],
    taker: ["alpha", 3],
    search: { others: () => [waitingOf(1)] },
    victims: { b5: "InCohortFairSharing" },
  },
  "a gang that was preempted takes by its final share alone": {
    queues: fairTree(5, BY_INITIAL),
    gangs: [["b5", "beta", 5]],
    taker: ["alpha", 4],
    wasPreempted: true,
    victims: {},
  },
  "a gang that borrows takes what a queue owns": {
    queues: OWNED,
    gangs: LENT_AND_OWNED,
    taker: ["high", 5],
    victims: { l4: "InCohortReclaimWhileBorrowing", l1: "InCohortReclaimWhileBorrowing" },
  },
  "a gang that was preempted does not": {
    queues: OWNED,
    gangs: LENT_AND_OWNED,
    taker: ["high", 5],
    wasPreempted: true,
    victims: {},
  },
  "it takes no minimum of a gang whose growth it may not take": {
    queues: { ...OWNED, low: ["all", 4] },
    gangs: [
      ["elastic", "low", 3, { isGrowth: true }],
      ["elastic", "low", 2],
      ["l1", "low", 1],
    ],
    taker: ["high", 2],
    wasPreempted: true,
    victims: {},
  },
  "a gang that was preempted takes one of its queue for a share as low as another one's": {
    queues: fairTree(7, BY_FINAL),
    gangs: OWN_AND_OTHERS,
    taker: ["alpha", 3],
    wasPreempted: true,
    victims: { a2: "InClusterQueue", b1: "InCohortFairSharing" },
  },
  "it does not if that one runs again with another flavor": {
    queues: {
      all: [null, { [POOL]: 7, [OTHER]: 2 }, { fairSharing: BY_FINAL }],
      alpha: ["all", { [POOL]: 0, [OTHER]: 0 }, { ...OWN, ...RECLAIM }],
      beta: ["all", 0],
    },
    gangs: OWN_AND_OTHERS,
    taker: ["alpha", 3],
    wasPreempted: true,
    search: { choicesOf: () => [{ all: new Map([[OTHER, 2]]), fewest: new Map([[OTHER, 2]]) }] },
    victims: {},
  },
  "a branch takes back its own quota of one flavor although it borrows another": {
    queues: TWO_FLAVORS,
    gangs: [
      ["big", "ll", 0, { uses: { [OTHER]: 8 } }],
      ["r4", "rl", 4],
      ["s4", "rl", 4],
    ],
    taker: ["ll", 4],
    victims: { r4: "InCohortReclamation" },
  },
  "another branch does not take that back": {
    queues: TWO_FLAVORS,
    gangs: [
      ["big", "ll", 0, { uses: { [OTHER]: 8 } }],
      ["l4", "ll", 4],
      ["r4", "rl", 4],
    ],
    taker: ["rl", 4],
    victims: {},
  },
  "a queue that is not known takes nothing": {
    queues: ALONE,
    gangs: [["a", "solo", 4]],
    taker: ["gone", 1],
    victims: {},
  },
};

for (const [name, of] of Object.entries(cases)) {
  test(name, () => {
    const quota = new QuotaState();
    for (const [queue, [parent, nominal, policy]] of Object.entries(of.queues)) {
      const amounts = typeof nominal === "number" ? { [POOL]: nominal } : nominal;
      const quotas = Object.entries(amounts).map(([flavor, amount]) => ({ flavor, resource: "gpu", nominal: amount }));
      const strategy = "BEST_EFFORT_FIFO" as const;
      quota.setQueue(queue, { name: queue, parent, strategy, policy: { ...DEFAULT_POLICY, ...policy }, quotas });
    }
    const { projectLimit = null } = of;
    for (const pool of [POOL, OTHER]) {
      quota.setPool(pool, { pool, quota: null, projectDefault: projectLimit, namespaceDefault: null });
    }
    const running = of.gangs.map(
      ([uid, queue, gpus, { priority = 0, project = "mine", uses: more, ...growth } = {}]): RunningGang => {
        const account = quota.account(queue, project, "ml");
        const uses = new Map(Object.entries(more ?? { [POOL]: gpus }));
        for (const [pool, amount] of uses) quota.charge(account, pool, amount);
        return { uid, account, priority, createTimeMs: 0, admitTimeMs: 0, evicted: false, uses, ...growth };
      },
    );
    const gangsOf = (queue: string) => running.filter(({ account }) => account.queue === queue);
    const [queue, gpus] = of.taker;
    const account = quota.account(queue, "mine", "ml");
    const requested = new Map([[POOL, gpus]]);
    const needed = new Set([POOL]);
    const victims = victimsFor(
      { quota, gangsOf, ...of.search },
      { account, priority: 5, createTimeMs: 0, requested, needed, ...(of.wasPreempted && { wasPreempted: true }) },
    );
    assert.deepEqual(Object.fromEntries(victims.map(({ gang, reason }) => [gang.uid, reason])), of.victims);
  });
}
