import type { OnClusterLost } from "../job/spec.ts";
import type { QueuePolicy } from "../plan/model/queue-policy.ts";
import type { StopPolicy } from "../plan/model/queue-stop.ts";
import type { FlavorQuota, QueueStrategy } from "../plan/model/snapshot.ts";
import type { TreeProblem } from "../quota/check-tree.ts";
import type { Freeze } from "../quota/freeze.ts";
import type { ChangeOutcome } from "./change-outcome.ts";

export type QueueRecord = {
  readonly name: string;
  /** Null: the queue is the root of a tree. */
  readonly parent: string | null;
  readonly strategy: QueueStrategy;
  readonly stopPolicy: StopPolicy;
  /** How many jobs of the queue and those below it may be admitted at the same time. Null: any number. */
  readonly maxRunningJobs: number | null;
  /** How many jobs of the queue may wait or be suspended before a create is refused. Null: any number. */
  readonly maxWaitingJobs: number | null;
  readonly policy: QueuePolicy;
  /** Whether gangs that ran in a lost cluster wait for it, or move. Null: as the queue above says, or the namespace. */
  readonly onClusterLost: OnClusterLost | null;
  /** The queue whose stop policy stops this one: itself, or one above it. Null: none does. Computed when read. */
  readonly stoppedBy: string | null;
  /** Null: the queue itself is not frozen. */
  readonly freeze: Freeze | null;
  /** The nearest queue that is frozen: itself, or one above it. Null: none is. Computed when read. */
  readonly frozenBy: string | null;
  readonly quotas: readonly FlavorQuota[];
  readonly version: number;
  readonly createTimeMs: number;
  readonly updateTimeMs: number;
  /** How much of each flavor is used, also by queues below it beyond their guarantees. Computed when read. */
  readonly used: Readonly<Record<string, number>>;
  /** How much of that is beyond the queue's quota. Computed when read. */
  readonly borrowed: Readonly<Record<string, number>>;
  /** How much of the queue's own quota of each flavor is in use by other queues. Computed when read. */
  readonly lent: Readonly<Record<string, number>>;
  /** The queue's part of what its tree can lend, as `shownShare` says. Computed when read. */
  readonly share: number;
  /** How many jobs of the queue wait. Computed when read. */
  readonly waiting: number;
  /** How many jobs of the queue are admitted. Computed when read. */
  readonly admitted: number;
  /** By pool: what the queue's own jobs hold in clusters that count as lost. Computed when read. */
  readonly lost: Readonly<Record<string, number>>;
};

/** The part of a queue that administrators set. */
export type QueueSettings = Pick<QueueRecord, "name" | "strategy" | "quotas"> & {
  /** Null or omitted: the queue is the root of a tree. */
  readonly parent?: string | null;
  /** Omitted: stays as it is; `NONE` for a new queue. */
  readonly stopPolicy?: StopPolicy;
  /** Null or omitted: any number. */
  readonly maxRunningJobs?: number | null;
  /** Null or omitted: any number. */
  readonly maxWaitingJobs?: number | null;
  /** Omitted: `DEFAULT_POLICY`. */
  readonly policy?: QueuePolicy;
  /** Null or omitted: the queue does not say. */
  readonly onClusterLost?: OnClusterLost | null;
};

/** A pool that is counted elsewhere, so that a queue cannot have a quota for it. */
export type PoolApart = { readonly pool: string; readonly domain: string; readonly durability: "LEDGER" | "REDIS" };

export type QueueOutcome =
  | ChangeOutcome<QueueRecord>
  /** A flavor of the queue is a pool that is not counted with queues. */
  | ({ readonly kind: "apart" } & PoolApart)
  /** The queue cannot be below that parent. */
  | { readonly kind: "misplaced"; readonly problem: TreeProblem };
