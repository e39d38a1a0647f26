import assert from "node:assert/strict";
import { test } from "node:test";
import type { RunningGang, VictimSearch } from "../../../src/core/plan/preempt/running-gang.ts";
import { victimsFor } from "../../../src/core/plan/preempt/victims.ts";
import { DEFAULT_POLICY, type QueuePolicy } from "../../../src/core/plan/queue-policy.ts";
import { QuotaState } from "../../../src/core/plan/state/quota-state.ts";

const POOL = "gpu/h100";

type Gang = readonly [uid: string, queue: string, gpus: number, more?: { priority?: number; project?: string }];

type Case = {
  /** By name: the queue above, the quota, and what differs from the default policy. */
  readonly queues: Readonly<
    Record<string, readonly [parent: string | null, nominal: number, policy?: Partial<QueuePolicy>]>
  >;
  readonly gangs: readonly Gang[];
  readonly taker: readonly [queue: string, gpus: number];
  readonly projectLimit?: number;
  readonly search?: Partial<VictimSearch>;
  readonly victims: Readonly<Record<string, string>>;
};

const OWN = { withinQueue: "LOWER_PRIORITY" } as const;
const RECLAIM = { reclaimWithinTree: "ANY" } as const;
const ALONE = { solo: [null, 4, OWN] } as const;

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
  "the limit of the taker's project must hold too": {
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
      const quotas = [{ flavor: POOL, resource: "gpu", nominal }];
      const strategy = "BEST_EFFORT_FIFO" as const;
      quota.setQueue(queue, { name: queue, parent, strategy, policy: { ...DEFAULT_POLICY, ...policy }, quotas });
    }
    const { projectLimit = null } = of;
    quota.setPool(POOL, { pool: POOL, quota: null, projectDefault: projectLimit, namespaceDefault: null });
    const running = of.gangs.map(([uid, queue, gpus, { priority = 0, project = "mine" } = {}]): RunningGang => {
      const account = quota.account(queue, project, "ml");
      quota.charge(account, POOL, gpus);
      const uses = new Map([[POOL, gpus]]);
      return { uid, account, priority, createTimeMs: 0, admitTimeMs: 0, evicted: false, uses };
    });
    const gangsOf = (queue: string) => running.filter(({ account }) => account.queue === queue);
    const [queue, gpus] = of.taker;
    const account = quota.account(queue, "mine", "ml");
    const wants = new Map([[POOL, gpus]]);
    const needed = new Set([POOL]);
    const victims = victimsFor(
      { quota, gangsOf, ...of.search },
      { account, priority: 5, createTimeMs: 0, wants, needed },
    );
    assert.deepEqual(Object.fromEntries(victims.map(({ gang, reason }) => [gang.uid, reason])), of.victims);
  });
}
