import type { FlavorLabels } from "../../job/flavor-labels.ts";
import type { PlannedRun } from "../../job/placement/placement.ts";
import type { Allocation, Scope } from "../../quota/counters.ts";
import type { Freeze } from "../../quota/freeze.ts";
import type { BlockedPod } from "./blocked-pod.ts";
import type { GangHolds, PlanGang } from "./plan-gang.ts";

/** A gang's allocation of one pool, before the planner names its token. */
export type PlannedAllocation = Pick<Allocation, "pool" | "amount" | "project" | "namespace"> & {
  readonly queue: string;
};

/**
 * One gang that is admitted now, or one that grows: to its full size in one step, or, if its kind is elastic, by as
 * much as there is capacity for. Or one of which members get other nodes (`repair`).
 */
export type PlannedAdmission = {
  readonly kind: "admit" | "grow" | "repair";
  readonly jobUid: string;
  /** The gang's ask and its generation in the snapshot: guard the record. */
  readonly askHash: string;
  readonly generation: number;
  /** The number of the new admission, or of the live one that grows. */
  readonly admission: number;
  /**
   * The live admission in a lost cluster that ends with the record of this one, which takes over its tokens. Omitted:
   * the gang waits.
   */
  readonly movesFrom?: number;
  /** Null for a job without pods, which enters no cluster. */
  readonly cluster: string | null;
  /** The cluster is a simulated one. Omitted: it is not. */
  readonly simulated?: true;
  /**
   * The value of the cluster's counter when this is recorded in the plan's order. Every recorded admission or growth
   * raises it by one.
   */
  readonly admissionCounter: number;
  /** All members that the gang has afterwards, by replica type. */
  readonly members: Readonly<Record<string, number>>;
  readonly flavors: Readonly<Record<string, string>>;
  readonly flavorLabels: FlavorLabels;
  /** The nodes of the members that come now. Omitted: they are not planned on nodes. */
  readonly runs?: readonly PlannedRun[];
  /** For a repair, the version of the placement that it replaces: guards the record. Omitted: it is none. */
  readonly repairs?: number;
  /** One allocation for each flavor, without tokens: the planner names them. Empty without a flavored resource. */
  readonly allocations: readonly PlannedAllocation[];
};

/** A live admission that is to be undone, so that its job waits again. */
export type PlannedEviction = {
  readonly jobUid: string;
  readonly queue: string;
  readonly admission: number;
  /** `QueueStopped`. */
  readonly reason: string;
  readonly message: string;
};

/** Why one cluster cannot take the gang now. */
export type ClusterRefusal = {
  readonly cluster: string;
  /**
   * `Cordoned`, `Unreachable`, `NotSelected`, `NoSuchFlavor`, `NoSuchLevel`, `Draining`, `TooLarge` (does not fit the
   * empty cluster, or none of its domains), `NoCapacity`, `DomainFull` (all pods fit, but not as near each other as
   * they must be), `CapacityUnknown`, `Retired`.
   */
  readonly reason: string;
  readonly message: string;
  /** The cluster is a simulated one. Omitted: it is not. */
  readonly simulated?: true;
  readonly flavor: string | null;
  /** The number of pods that have to fit, and how many fit now. */
  readonly need: number;
  readonly have: number;
  /** A pod that no node takes, for `TooLarge` and `NoCapacity`. Null: nodes are not what is in the way. */
  readonly blocked: BlockedPod | null;
  /** What keeps pods that fit from being as near each other as they must be. Omitted: domains are not in the way. */
  readonly domain?: DomainRefusal;
};

/** How near the domains of a cluster come to what a gang wishes for. */
export type DomainRefusal = {
  /** The name of the level of which one domain must take all pods, or each slice. */
  readonly level: string;
  /** The values of the labels of the domain that takes most pods now, `b1/r3`. Null: the wish is for slices. */
  readonly domain: string | null;
  /** Null: all pods must be in one domain. */
  readonly sliceSize: number | null;
  /** How many of the pods fit there now; of slices, in all domains together. */
  readonly fits: number;
  /** The same for the domain that takes most of them when it is empty. */
  readonly fitsEmpty: number;
};

/** Why one quota, at one of its levels, cannot take the gang now. */
export type QuotaRefusal = {
  /** The job's queue. */
  readonly queue: string;
  readonly flavor: string;
  /** The level that is in the way. */
  readonly scope: Scope;
  /**
   * `QuotaExhausted`, `AboveQuota` (more than the whole limit), `NoQuota`, `Reserved` (kept for a gang before it in the
   * pool's waiting line), `PoolFrozen`, `QueueFrozen`.
   */
  readonly reason: string;
  /** The amount that the gang would add at this level: above its own queue only what exceeds the guarantees below. */
  readonly need: number;
  readonly used: number;
  readonly limit: number;
  /** The part of the pool's capacity that is kept for the first of its waiting line. */
  readonly reserved: number;
  /** What nominees still lack at this level: their victims, which have not left, use some of it or all. Omitted: 0. */
  readonly booked?: number;
  /** The holders now: jobs as `namespace/name`, callers as `caller name`; largest first, at most 5. */
  readonly heldBy: readonly string[];
  /** Who has frozen the pool. Omitted: nobody, or the counters say that it is frozen and not by whom. */
  readonly freeze?: Freeze;
};

/** Why a gang still waits: the dominant reason, and everything that is in its way. */
export type Refusal = {
  readonly jobUid: string;
  /** The gang's generation in the snapshot: guards the record. */
  readonly generation: number;
  /**
   * `QuotaExhausted`, `AboveQuota`, `NoQuota`, `Reserved`, `UnknownQueue`, `NoCapacity`, `DomainFull`, `TooLarge`,
   * `NoCluster`, `QueueStopped`, `QueueFrozen`, `PoolFrozen`, `QueueFull`, `TenantFull`, `Suspended`, `Backoff`,
   * `Draining`, `BehindHead`, `Preempting`.
   */
  readonly reason: string;
  readonly message: string;
  readonly clusters: readonly ClusterRefusal[];
  readonly quotas: readonly QuotaRefusal[];
  /** For `BehindHead`, the uid of the head's job, whose own refusal says what lacks. Omitted: another reason. */
  readonly head?: string;
  /** When the answer may change by time alone. Null: only an event can change it. */
  readonly retryAtMs: number | null;
};

/** The gang that has the planner's place in the waiting lines of its pools: it lacks nothing but their tokens. */
export type PlaceInLine = {
  /** The admission that it gets once its pools have capacity; the cluster keeps no capacity for it. */
  readonly planned: PlannedAdmission;
  /** The priority and the age of its job. */
  readonly priority: number;
  readonly sinceMs: number;
  /**
   * How many of the plan's admissions come before it. Those after it leave capacity for it, unless they have a higher
   * priority.
   */
  readonly after: number;
};

/** The facts of a planned gang that its tokens, its record and its messages need. */
export type PlannedGang = Pick<
  PlanGang,
  "uid" | "generation" | "namespace" | "name" | "queue" | "priority" | "createTimeMs" | "waitsSinceMs" | "traceParent"
> & {
  /** True: it waits in a strict queue, where no gang may overtake it. */
  readonly isChained: boolean;
  /** The tokens that it holds as a nominee for the planned admission, by pool. Omitted: none. */
  readonly holds?: GangHolds["amounts"];
};

export type Plan = {
  readonly admissions: readonly PlannedAdmission[];
  /** The first gang in the plan's order that has a cluster and waits for tokens of pools alone. Null: none does. */
  readonly inLine: PlaceInLine | null;
  readonly refusals: readonly Refusal[];
  /** When to plan again without an event. Null: only after an event. */
  readonly replanAtMs: number | null;
};

/** An admission or a growth that the counters have granted, ready to be recorded. */
export type AdmissionRecord = {
  readonly planned: PlannedAdmission;
  /** The plan's allocations less what the gang holds as a nominee, with tokens. */
  readonly allocations: readonly Allocation[];
  /** Null: there are no allocations. */
  readonly fence: bigint | null;
  /** The strict queue in which no gang may overtake this one. Null: it is in none. */
  readonly chain: string | null;
  readonly gang: PlannedGang;
};

/** Admissions and growths in the plan's order, at most one for each job. One transaction records them. */
export type AdmissionBatch = {
  readonly records: readonly AdmissionRecord[];
  /** The counter of each of their clusters. Every recorded admission or growth raises it by one. */
  readonly counters: ReadonlyMap<string, number>;
  readonly quotaEpoch: number;
  readonly plannerEpoch: number;
  readonly nowMs: number;
};

/** How the record of one admission of a batch ended. */
export type AdmitOutcome =
  | "recorded"
  /** The job, the planner's lease, the cluster's counter or the quota epoch has moved on: plan again. */
  | "stale"
  /** An earlier gang of its chain was not recorded. */
  | "heldUp"
  /** The ledger's own limits refused the allocations, so they were never granted. */
  | "refusedByLedger";

/** An amount of a pool that is kept for a gang in the pool's waiting line. */
export type AmountInLine = { readonly pool: string; readonly amount: number };
