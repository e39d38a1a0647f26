import type { PriorityClassSettings } from "../../../src/core/admin/priority-class.ts";
import type { QueueSettings } from "../../../src/core/admin/queue.ts";
import type { SentSpec } from "../../../src/core/job/request/sent.ts";
import {
  DEFAULT_POLICY,
  FAIR_SHARING_STRATEGIES,
  type QueuePolicy,
} from "../../../src/core/plan/model/queue-policy.ts";
import { pick } from "../../support/random.ts";
import { GPU } from "./world.ts";

/** The queues of a history, and its priority classes. */
export type RandomPolicies = {
  /** A queue comes after the one above it. */
  readonly queues: readonly QueueSettings[];
  /** The queues that jobs name. */
  readonly leaves: readonly string[];
  readonly classes: readonly PriorityClassSettings[];
};

/** Two queues of their own without any policy. Jobs are preempted by chance alone. */
export const NO_POLICIES: RandomPolicies = {
  queues: [
    { name: "default", strategy: "BEST_EFFORT_FIFO", quotas: quotasOf({ h100: 8, a100: 4 }) },
    { name: "small", strategy: "BEST_EFFORT_FIFO", quotas: quotasOf({ a100: 4, h100: 4 }) },
  ],
  leaves: ["default", "default", "small"],
  classes: [],
};

export const CLASSES: readonly PriorityClassSettings[] = [
  { name: "low", value: 0, preemptionPolicy: "LOWER_PRIORITY", description: "", globalDefault: false },
  { name: "high", value: 2, preemptionPolicy: "LOWER_PRIORITY", description: "", globalDefault: false },
  { name: "polite", value: 2, preemptionPolicy: "NEVER", description: "", globalDefault: false },
];

/** A tree of queues that borrow and lend, each with its own policy. */
export function randomPolicies(random: () => number): RandomPolicies {
  const isFair = random() < 0.5;
  const queueOf = (name: string, parent: string | null): QueueSettings => ({
    name,
    parent,
    strategy: random() < 0.3 ? "STRICT_FIFO" : "BEST_EFFORT_FIFO",
    quotas: randomQuotas(random, parent),
    policy: randomPolicy(random, { isRoot: parent === null, isFair }),
  });
  const queues = [
    queueOf("all", null),
    queueOf("default", "all"),
    queueOf("team", "all"),
    queueOf("small", "team"),
    queueOf("other", "team"),
  ];
  return { queues, leaves: ["default", "default", "small", "other"], classes: CLASSES };
}

export function randomPolicy(random: () => number, of: { readonly isRoot: boolean; readonly isFair: boolean }) {
  const seldom = <T>(value: T, other: T): T => (random() < 0.2 ? value : other);
  const reclaimWithinTree = pick(random, ["NEVER", "LOWER_PRIORITY", "ANY", "ANY"] as const);
  const borrows = reclaimWithinTree !== "NEVER" && random() < 0.5;
  const strategies = pick(random, [FAIR_SHARING_STRATEGIES, FAIR_SHARING_STRATEGIES.slice(1)]);
  const policy: QueuePolicy = {
    ...DEFAULT_POLICY,
    weight: pick(random, [0, 1, 1, 2]),
    fairSharing: of.isRoot && of.isFair ? strategies : null,
    withinQueue: pick(random, ["NEVER", "LOWER_PRIORITY", "LOWER_PRIORITY", "LOWER_OR_NEWER_EQUAL_PRIORITY"]),
    reclaimWithinTree,
    borrowWithin: borrows
      ? { policy: "LOWER_PRIORITY", maxPriority: pick(random, [null, 0, 1]) }
      : { policy: "NEVER", maxPriority: null },
    minRuntimePreemptMs: seldom<number | null>(pick(random, [500, 5_000]), null),
    minRuntimeReclaimMs: seldom<number | null>(pick(random, [500, 5_000]), null),
    maxPreemptions: seldom<number | null>(pick(random, [0, 1, 2]), null),
    preemptionsPerHour: seldom<number | null>(pick(random, [0, 1, 3]), null),
    ageing: seldom<QueuePolicy["ageing"]>({ intervalMs: 1_000, step: 1, limit: 3 }, null),
    reserveAfterMs: pick(random, [0, 1_000, 1_000, 5_000]),
  };
  return policy;
}

export function randomQuotas(random: () => number, parent: string | null): QueueSettings["quotas"] {
  const limit = () => (parent !== null && random() < 0.4 ? Math.floor(random() * 4) : undefined);
  return ["h100", "a100"].map((model) => {
    const nominal = Math.floor(random() * (model === "h100" ? 5 : 3));
    const [borrowingLimit, lendingLimit] = [limit(), limit()];
    return {
      flavor: `gpu/${model}`,
      resource: GPU,
      nominal,
      ...(borrowingLimit === undefined ? {} : { borrowingLimit }),
      ...(lendingLimit === undefined ? {} : { lendingLimit }),
    };
  });
}

/** What a job in a world with policies asks for besides its pods. */
export function withRandomPolicy(spec: SentSpec, random: () => number): SentSpec {
  const { priority, ...rest } = spec;
  const { schedulingPolicy } = spec.runPolicy ?? {};
  const maxPreemptions = pick(random, [undefined, undefined, undefined, 0, 1]);
  const maxRuntimeMs = pick(random, [undefined, undefined, 5_000, 30_000]);
  const runPolicy = {
    ...spec.runPolicy,
    ...(maxRuntimeMs === undefined ? {} : { maxRuntimeMs }),
    ...(random() < 0.2 ? { backfill: true } : {}),
    schedulingPolicy: { ...schedulingPolicy, ...(maxPreemptions === undefined ? {} : { maxPreemptions }) },
  };
  const name = random() < 0.6 ? pick(random, CLASSES).name : null;
  return {
    ...(name === null ? { ...rest, ...(priority !== undefined && { priority }) } : rest),
    runPolicy,
    ...(name === null ? {} : { priorityClassName: name }),
  };
}

/** What a queue has of each model, and lends without a limit. */
export function quotasOf(nominals: Readonly<Record<string, number>>): QueueSettings["quotas"] {
  return Object.entries(nominals).map(([model, nominal]) => ({ flavor: `gpu/${model}`, resource: GPU, nominal }));
}
