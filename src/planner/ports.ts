import type { AdmissionBatch, AdmitOutcome, Refusal } from "../core/plan/plan-types.ts";
import type { PlanSnapshot } from "../core/plan/snapshot.ts";
import type { AllocationRef, Counters } from "../core/quota/counters.ts";
import type { Clock } from "../runtime/clock.ts";

/** The functions of the store that the planner needs. */
export type PlannerStore = {
  readonly snapshot: () => Promise<PlanSnapshot>;
  /**
   * Records a batch in one transaction: for each gang its admission, its allocations and sums, the job's new status and
   * the event, or nothing. Returns the outcomes in the order of the records. If it throws `UnavailableError`, the batch
   * may have been recorded; if it throws anything else, nothing of it was.
   */
  readonly recordAdmissions: (batch: AdmissionBatch) => Promise<readonly AdmitOutcome[]>;
  /** Keeps the refusals for ExplainJob. A job's own record and version change only if the dominant reason did. */
  readonly recordRefusals: (refusals: readonly Refusal[], plannerEpoch: number, nowMs: number) => Promise<void>;
};

/**
 * The quota domain that gangs are charged in. It opens by itself. Calls throw `UnavailableError` while it is closed,
 * and while Redis or the database cannot be reached. A grant that is neither confirmed nor given back is freed after a
 * while, unless the ledger has it.
 */
export type PlannerQuota = {
  /** The epoch under which the domain is open. If it is being opened, waits for that for a moment. */
  readonly open: () => Promise<number>;
  /** Closes that epoch, which can no longer be trusted. */
  readonly lost: (epoch: number, why: string) => void;
  /** Closes that epoch, because the counters have answered that they are not open for it. */
  readonly notOpened: (epoch: number) => void;
  /** Passes the ledger's releases and limits on to the counters. */
  readonly catchUp: (epoch: number) => Promise<void>;
  readonly counters: Pick<Counters, "grant" | "grantAll" | "stand" | "leave" | "onOffer">;
  /** Tells the counters, some time later, that the ledger has these grants. */
  readonly confirm: (epoch: number, allocations: readonly AllocationRef[]) => void;
  /** Frees those tokens that the ledger does not have, and makes sure that it never takes them. */
  readonly giveBack: (
    epoch: number,
    tokens: readonly { readonly pool: string; readonly token: string }[],
  ) => Promise<void>;
};

export type PlannerPorts = {
  readonly clock: Clock;
  readonly store: PlannerStore;
  readonly quota: PlannerQuota;
  /** Called with the time that a plan took. */
  readonly onPlanned?: (facts: { readonly planMs: number }) => void;
  /** The planner's lease: its epoch while this planner surely holds it, else null. */
  readonly lease: { readonly epoch: () => number | null };
  /** A hint to the worker that owns a job to look at it now. A lost hint only costs time. */
  readonly wakeJob: (jobUid: string) => void;
};
