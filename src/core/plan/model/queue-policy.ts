/** How a queue shares and preempts. The words and the defaults are those of Kueue's ClusterQueue and Cohort. */

/** Which gangs of the same queue may be preempted for a waiting gang. */
export type WithinQueue = "NEVER" | "LOWER_PRIORITY" | "LOWER_OR_NEWER_EQUAL_PRIORITY";

/** Which gangs of other queues of the tree that borrow may be preempted when a queue takes back its quota. */
export type ReclaimWithinTree = "NEVER" | "LOWER_PRIORITY" | "ANY";

/** Which gangs of other queues that borrow may be preempted for a gang whose queue borrows too. */
export type BorrowWithin = {
  readonly policy: "NEVER" | "LOWER_PRIORITY";
  /** Only gangs up to this priority may be preempted. Null: gangs of any priority below the preemptor's. */
  readonly maxPriority: number | null;
};

/** Compares the share of the preemptor's branch after the admission with that of the victim's branch. */
export type FairSharingStrategy =
  /** At most the victim's share once the victim is gone. */
  | "LESS_THAN_OR_EQUAL_TO_FINAL_SHARE"
  /** Below the victim's share while the victim is there. */
  | "LESS_THAN_INITIAL_SHARE";

/** Whether a flavor ends the search, or the next one is tried too. */
export type FlavorSearch = "MAY_STOP_SEARCH" | "TRY_NEXT_FLAVOR";

export type FlavorFungibility = {
  /** For a flavor that fits only by borrowing. */
  readonly whenCanBorrow: FlavorSearch;
  /** For a flavor that fits only by preempting. */
  readonly whenCanPreempt: FlavorSearch;
  /** Which of several such flavors is chosen. Null: one that needs no preemption, then one that borrows less. */
  readonly preference: "PREEMPTION_OVER_BORROWING" | "BORROWING_OVER_PREEMPTION" | null;
};

export type QueuePolicy = {
  /** The queue's weight among its siblings when they compete for lent quota. 0: it gets only what no sibling wants. */
  readonly weight: number;
  /** Only on the root of a tree: strategies in the order in which they are tried. Null: shares do not decide. */
  readonly fairSharing: readonly FairSharingStrategy[] | null;
  readonly withinQueue: WithinQueue;
  readonly reclaimWithinTree: ReclaimWithinTree;
  readonly borrowWithin: BorrowWithin;
  readonly fungibility: FlavorFungibility;
  /** How long a gang runs at least before it may be preempted for its own queue. Null: as the queue above says. */
  readonly minRuntimePreemptMs: number | null;
  /** How long it runs at least before another queue may reclaim from it. Null: as the queue above says. */
  readonly minRuntimeReclaimMs: number | null;
  /** Protects a gang after it has been preempted this many times. Null: as the queue above says. */
  readonly maxPreemptions: number | null;
  /** The most jobs that may be preempted for gangs of the queue within an hour. Null: no limit. */
  readonly preemptionsPerHour: number | null;
  /** How the priority of waiting jobs rises in the order of admission. Null: it stays. */
  readonly ageing: Ageing | null;
  /** After a gang has waited this long for nodes or quota, freed capacity is reserved for it. 0: never. */
  readonly reserveAfterMs: number;
};

export const FAIR_SHARING_STRATEGIES: readonly FairSharingStrategy[] = [
  "LESS_THAN_OR_EQUAL_TO_FINAL_SHARE",
  "LESS_THAN_INITIAL_SHARE",
];

export const DEFAULT_POLICY: QueuePolicy = {
  weight: 1,
  fairSharing: null,
  withinQueue: "NEVER",
  reclaimWithinTree: "NEVER",
  borrowWithin: { policy: "NEVER", maxPriority: null },
  fungibility: { whenCanBorrow: "MAY_STOP_SEARCH", whenCanPreempt: "TRY_NEXT_FLAVOR", preference: null },
  minRuntimePreemptMs: null,
  minRuntimeReclaimMs: null,
  maxPreemptions: null,
  preemptionsPerHour: null,
  ageing: null,
  reserveAfterMs: 600_000,
};

/** Raises the priority of a waiting job by `step` for each interval that it has waited. */
export type Ageing = {
  readonly intervalMs: number;
  readonly step: number;
  /** The most by which the priority rises. */
  readonly limit: number;
};

/** For this long, a preemption counts against the budget of the queue that caused it. */
export const BUDGET_WINDOW_MS = 3_600_000;
