import type { AllocationLine } from "../quota/counters.ts";

/** One gang that boards now, or one that grows to its full size in one step. */
export type PlannedAdmission = {
  readonly kind: "admit" | "grow";
  readonly jobUid: string;
  /** The job's version in the snapshot: guards the record. */
  readonly jobVersion: number;
  /** The number of the new admission, or of the live one that grows. */
  readonly admission: number;
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
  readonly lines: readonly Omit<AllocationLine, "token">[];
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

/** Why one quota cannot take the gang now. */
export type QuotaRefusal = {
  readonly queue: string;
  readonly flavor: string;
  /** `QuotaExhausted`, `AboveQuota` (more than the whole limit), `NoQuota`. */
  readonly reason: string;
  readonly need: number;
  readonly used: number;
  readonly limit: number;
  /** Jobs that hold it now, `namespace/name`, largest first; at most 5. */
  readonly heldBy: readonly string[];
};

/** Why a gang still waits: the dominant reason, and all that was found. */
export type Refusal = {
  readonly jobUid: string;
  readonly jobVersion: number;
  /** `QuotaExhausted`, `AboveQuota`, `NoQuota`, `UnknownQueue`, `NoCapacity`, `TooLarge`, `NoCluster`, `Backoff`, `Draining`, `BehindHead`. */
  readonly reason: string;
  readonly message: string;
  readonly clusters: readonly ClusterRefusal[];
  readonly quotas: readonly QuotaRefusal[];
  /** When the answer may change by time alone; null: only by events. */
  readonly retryAtMs: number | null;
};

export type Plan = {
  readonly admissions: readonly PlannedAdmission[];
  readonly refusals: readonly Refusal[];
  /** When to plan again even if nothing is heard; null: only when something is heard. */
  readonly replanAtMs: number | null;
};
