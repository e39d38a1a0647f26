import type { AllocationLine, Scope } from "../quota/counters.ts";

/** What a gang is charged of one pool, before it is named. */
export type PlannedLine = Pick<AllocationLine, "pool" | "amount" | "project" | "namespace"> & {
  readonly queue: string;
};

/** One gang that boards now, or one that grows: to its full size in one step, or of an elastic kind by as much as there is room. */
export type PlannedAdmission = {
  readonly kind: "admit" | "grow";
  readonly jobUid: string;
  /** The job's version in the snapshot: guards the record. */
  readonly jobVersion: number;
  /** The number of the new admission, or of the live one that grows. */
  readonly admission: number;
  /** Empty for a job without pods, which enters no cluster. */
  readonly cluster: string;
  /**
   * What the cluster's counter stands at when this is recorded in the plan's order: every admission that is recorded, growth
   * too, raises it by one.
   */
  readonly admissionCounter: number;
  /** All members that it has afterwards, by replica type. */
  readonly members: Readonly<Record<string, number>>;
  readonly flavors: Readonly<Record<string, string>>;
  readonly nodeLabels: Readonly<Record<string, string>>;
  /** One line a flavor, without tokens: the planner names them. Empty for a gang that asks for no flavored resource. */
  readonly lines: readonly PlannedLine[];
};

/** Why one cluster cannot take the gang now. */
export type ClusterRefusal = {
  readonly cluster: string;
  /** `Cordoned`, `Unreachable`, `NotSelected`, `NoSuchFlavor`, `Draining`, `TooLarge` (does not fit the empty cluster), `NoCapacity`, `CapacityUnknown`. */
  readonly reason: string;
  readonly message: string;
  readonly flavor: string | null;
  /** Pods that would have to fit, and how many fit now. */
  readonly need: number;
  readonly have: number;
};

/** Why one quota, at one of the levels that a line is counted at, cannot take the gang now. */
export type QuotaRefusal = {
  /** The job's. */
  readonly queue: string;
  readonly flavor: string;
  /** The level that is in the way. */
  readonly scope: Scope;
  /** `QuotaExhausted`, `AboveQuota` (more than the whole limit), `NoQuota`, `Reserved` (kept for a gang that stands before it in the pool's line). */
  readonly reason: string;
  /** What it would add there: of a queue above its own only what exceeds the guarantees below. */
  readonly need: number;
  readonly used: number;
  readonly limit: number;
  /** Of the pool's room, what is kept for the first of its line. */
  readonly reserved: number;
  /** Who holds it now: jobs as `namespace/name`, callers as `caller name`; largest first, at most 5. */
  readonly heldBy: readonly string[];
};

/** Why a gang still waits: the dominant reason, and all that was found. */
export type Refusal = {
  readonly jobUid: string;
  readonly jobVersion: number;
  /** `QuotaExhausted`, `AboveQuota`, `NoQuota`, `Reserved`, `UnknownQueue`, `NoCapacity`, `TooLarge`, `NoCluster`, `Suspended`, `Backoff`, `Draining`, `BehindHead`. */
  readonly reason: string;
  readonly message: string;
  readonly clusters: readonly ClusterRefusal[];
  readonly quotas: readonly QuotaRefusal[];
  /** When the answer may change by time alone; null: only by events. */
  readonly retryAtMs: number | null;
};

/** The gang that the planner stands for in the lines of its pools: it lacks nothing else. */
export type PlaceInLine = {
  /** How it would board if its pools had room; the cluster keeps nothing for it. */
  readonly planned: PlannedAdmission;
  /** As of its job. */
  readonly priority: number;
  readonly sinceMs: number;
  /** So many of the plan's admissions come before it in the order of the queues; those after it leave room for it, unless they have a higher priority. */
  readonly after: number;
};

export type Plan = {
  readonly admissions: readonly PlannedAdmission[];
  /** The first gang of the order that has a cluster and waits for tokens of pools alone; null: there is none. */
  readonly inLine: PlaceInLine | null;
  readonly refusals: readonly Refusal[];
  /** When to plan again even if nothing is heard; null: only when something is heard. */
  readonly replanAtMs: number | null;
};
