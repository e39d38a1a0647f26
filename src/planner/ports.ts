import type { PlannedAdmission, Refusal } from "../core/plan/plan-types.ts";
import type { PlanSnapshot } from "../core/plan/snapshot.ts";
import type { AllocationLine, Counters, LedgerRow, QueueLimit } from "../core/quota/counters.ts";
import type { Clock } from "../runtime/clock.ts";

export type AdmitOutcome =
  | "recorded"
  /** The job, the planner's lease, the cluster's counter or the epoch moved on: plan again. */
  | "stale"
  /** The ledger's own limits refused the lines: they were never granted. */
  | "refusedByLedger";

/** What the planner needs of the store. */
export type PlannerStore = {
  readonly snapshot: () => Promise<PlanSnapshot>;
  /** Admission, its ledger rows and sums, the job's new status and the event in one transaction, guarded as the outcome says. */
  readonly recordAdmission: (record: {
    readonly planned: PlannedAdmission;
    readonly lines: readonly AllocationLine[];
    /** Null where there are no lines. */
    readonly fence: bigint | null;
    readonly quotaEpoch: number;
    readonly plannerEpoch: number;
    readonly nowMs: number;
  }) => Promise<AdmitOutcome>;
  /** Keeps the refusals for Explain; a job's record changes (and its version) only where the dominant reason did. */
  readonly recordRefusals: (refusals: readonly Refusal[], plannerEpoch: number, nowMs: number) => Promise<void>;
  /** Ledger rows that were released and whose counters have not confirmed yet. */
  readonly unconfirmedReleases: (limit: number) => Promise<readonly bigint[]>;
  readonly confirmReleases: (fences: readonly bigint[]) => Promise<void>;
  /** Raises the epoch of the quota domain and reads what counters are rebuilt from, in one transaction. */
  readonly raiseQuotaEpoch: () => Promise<{
    readonly epoch: number;
    readonly rows: readonly LedgerRow[];
    readonly limits: readonly QueueLimit[];
  }>;
};

export type PlannerPorts = {
  readonly clock: Clock;
  readonly store: PlannerStore;
  readonly counters: Counters;
  /** Hears how long a plan took to make. */
  readonly onPlanned?: (facts: { readonly planMs: number }) => void;
  /** The planner's lease: its epoch while this planner holds it for sure, null while another leads. */
  readonly lease: { readonly epoch: () => number | null };
  /** Tells the worker that owns a job to look at it now. A hint: a lost one only costs time. */
  readonly wakeJob: (jobUid: string) => void;
};
