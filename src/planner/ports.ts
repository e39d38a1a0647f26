import type { PlannedAdmission, Refusal } from "../core/plan/plan-types.ts";
import type { PlanSnapshot } from "../core/plan/snapshot.ts";
import type { AllocationLine, Counters, LineRef } from "../core/quota/counters.ts";
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
};

/**
 * The quota domain that gangs are charged in. It opens by itself; calls throw `UnavailableError` while it is closed or what they need is away.
 * A grant that is neither confirmed nor given back goes back by itself after a while, unless the ledger has it.
 */
export type PlannerQuota = {
  /** The epoch that it is open under; waits a moment for one that is being opened. */
  readonly open: () => Promise<number>;
  /** Trusts that epoch no more. */
  readonly lost: (epoch: number, why: string) => void;
  /** The same, since the counters have answered that they are closed for it. */
  readonly notOpened: (epoch: number) => void;
  /** Tells the counters what the ledger has released, and what its limits are. */
  readonly catchUp: (epoch: number) => Promise<void>;
  readonly counters: Pick<Counters, "grant" | "stand" | "leave" | "onOffer">;
  /** Tells the counters, by and by, that the ledger has these. */
  readonly confirm: (epoch: number, lines: readonly LineRef[]) => void;
  /** Frees those that the ledger does not have, and makes sure that it never will. */
  readonly giveBack: (
    epoch: number,
    tokens: readonly { readonly pool: string; readonly token: string }[],
  ) => Promise<void>;
};

export type PlannerPorts = {
  readonly clock: Clock;
  readonly store: PlannerStore;
  readonly quota: PlannerQuota;
  /** Hears how long a plan took to make. */
  readonly onPlanned?: (facts: { readonly planMs: number }) => void;
  /** The planner's lease: its epoch while this planner holds it for sure, null while another leads. */
  readonly lease: { readonly epoch: () => number | null };
  /** Tells the worker that owns a job to look at it now. A hint: a lost one only costs time. */
  readonly wakeJob: (jobUid: string) => void;
};
