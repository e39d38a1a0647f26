import type { FairSharingStrategy, QueuePolicy } from "../../../../src/core/plan/model/queue-policy.ts";
import { DEFAULT_POLICY } from "../../../../src/core/plan/model/queue-policy.ts";
import type { FlavorQuota, PlanQueue } from "../../../../src/core/plan/model/snapshot.ts";
import type { Branch } from "../../../../src/core/plan/usage/branches.ts";
import { QuotaState } from "../../../../src/core/plan/usage/quota-state.ts";
import { AMOUNT_MAX } from "../../../../src/core/quota/allocations.ts";

/** Amounts by pool, as cases write them. A pool is "flavor/resource". */
export type CaseAmounts = Readonly<Record<string, number>>;

export type CaseQueue = {
  readonly name: string;
  readonly leaf: boolean;
  readonly parent: string | null;
  readonly weight: number;
  readonly policies?: {
    readonly withinQueue: string;
    readonly reclaimWithinTree: string;
    readonly borrowWithin: { readonly policy: string; readonly maxPriorityThreshold: number | null } | null;
  };
  readonly quotas: Readonly<Record<string, { nominal: number; borrow: number | null; lend: number | null }>>;
  readonly preemptMinRuntimeMs?: number | null;
  readonly reclaimMinRuntimeMs?: number | null;
};

export type CaseGang = {
  readonly id: string;
  readonly queue: string;
  readonly priority: number;
  readonly createTime: number;
  readonly admitted?: { readonly sinceMs: number; readonly uses: CaseAmounts };
  readonly evicted?: { readonly reason: string; readonly atMs: number };
  readonly wants?: CaseAmounts;
  readonly needPreemption?: readonly string[];
};

/** The members of a case's input from which its state is made. */
export type CaseState = {
  readonly queues: readonly CaseQueue[];
  readonly usage?: Readonly<Record<string, CaseAmounts>>;
  readonly gangs?: readonly CaseGang[];
};

export type CaseConfig = { readonly fairSharing?: boolean; readonly strategies?: readonly string[] };

/** The state of a case. Its sums hold `usage`, and what the admitted gangs use. */
export function quotaStateOf({ queues, usage = {}, gangs = [] }: CaseState, config: CaseConfig): QuotaState {
  const state = new QuotaState();
  for (const queue of queues) state.setQueue(queue.name, planQueue(queue, gangs, config));
  const pools = [...state.queues.values()].flatMap(({ quotas }) => quotas.map(({ flavor }) => flavor));
  for (const pool of pools) {
    state.setPool(pool, { pool, quota: null, projectDefault: null, namespaceDefault: null });
  }
  const uses = [
    ...Object.entries(usage),
    ...gangs.flatMap(({ queue, admitted }) => (admitted === undefined ? [] : [[queue, admitted.uses] as const])),
  ];
  for (const [queue, amounts] of uses) {
    for (const [pool, amount] of Object.entries(amounts)) {
      const scope = { kind: "queue", pool, queue } as const;
      state.setSum(scope, state.sumOf(scope) + amount);
    }
  }
  return state;
}

/** The leaf of a queue that the case names. */
export function leafOf(state: QuotaState, queue: string): Branch {
  const leaf = state.branches.leaf(queue);
  if (leaf === null) throw new Error(`the case has no queue ${queue}`);
  return leaf;
}

export function amountsOf(amounts: CaseAmounts): ReadonlyMap<string, number> {
  return new Map(Object.entries(amounts));
}

/** A case leaves out a quota of 0 without limits: the pools that a queue's gangs use or want show it. */
function planQueue(queue: CaseQueue, gangs: readonly CaseGang[], config: CaseConfig): PlanQueue {
  const { name, parent } = queue;
  const listed = Object.entries(queue.quotas).map(([pool, quota]) => quotaOf(pool, quota));
  const used = gangs
    .filter((gang) => gang.queue === name)
    .flatMap(({ admitted, wants: requested }) => [admitted?.uses, requested]);
  const more = new Set(used.flatMap((amounts) => Object.keys(amounts ?? {})));
  for (const { flavor } of listed) more.delete(flavor);
  const unlisted = [...more].map((pool) => quotaOf(pool, { nominal: 0, borrow: null, lend: null }));
  return {
    name,
    parent,
    strategy: "BEST_EFFORT_FIFO",
    policy: policyOf(queue, config),
    quotas: [...listed, ...unlisted],
  };
}

function quotaOf(pool: string, { nominal, borrow, lend }: CaseQueue["quotas"][string]): FlavorQuota {
  return {
    flavor: pool,
    resource: pool.slice(pool.indexOf("/") + 1),
    nominal: Math.min(nominal, AMOUNT_MAX),
    ...(borrow === null ? {} : { borrowingLimit: borrow }),
    ...(lend === null ? {} : { lendingLimit: lend }),
  };
}

const WORDS = {
  never: "NEVER",
  lowerPriority: "LOWER_PRIORITY",
  lowerOrNewerEqualPriority: "LOWER_OR_NEWER_EQUAL_PRIORITY",
  any: "ANY",
  LessThanOrEqualToFinalShare: "LESS_THAN_OR_EQUAL_TO_FINAL_SHARE",
  LessThanInitialShare: "LESS_THAN_INITIAL_SHARE",
} as const;

function policyOf(queue: CaseQueue, config: CaseConfig): QueuePolicy {
  const { parent, weight, policies } = queue;
  const fair = config.fairSharing === true && parent === null;
  const fairSharing = fair ? (config.strategies ?? []).map((name) => word<FairSharingStrategy>(name)) : null;
  const { withinQueue = "never", reclaimWithinTree = "never", borrowWithin = null } = policies ?? {};
  return {
    ...DEFAULT_POLICY,
    weight,
    fairSharing,
    withinQueue: word<QueuePolicy["withinQueue"]>(withinQueue),
    reclaimWithinTree: word<QueuePolicy["reclaimWithinTree"]>(reclaimWithinTree),
    borrowWithin: {
      policy: word<QueuePolicy["borrowWithin"]["policy"]>(borrowWithin?.policy ?? "never"),
      maxPriority: borrowWithin?.maxPriorityThreshold ?? null,
    },
    minRuntimePreemptMs: queue.preemptMinRuntimeMs ?? null,
    minRuntimeReclaimMs: queue.reclaimMinRuntimeMs ?? null,
  };
}

function word<Word extends string>(name: string): Word {
  const found = WORDS[name as keyof typeof WORDS];
  if (found === undefined) throw new Error(`the case names an unknown policy ${name}`);
  return found as string as Word;
}
