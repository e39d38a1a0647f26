import type { KeptRefusal, ReportedRefusal } from "../core/plan/explain/kept-reason.ts";
import type { FleetPlace, FleetRead, KnownFleet } from "../core/plan/facts/fleet-read.ts";
import type { GangUpdate, PlanGang } from "../core/plan/model/plan-gang.ts";
import type {
  AdmissionBatch,
  AdmitOutcome,
  AmountInLine,
  Plan,
  PlannedEviction,
  PlannedGang,
} from "../core/plan/model/plan-types.ts";
import type { PreemptionRecord, PreemptOutcome } from "../core/plan/model/preemption.ts";
import type { AllocationRef, Counters } from "../core/quota/counters.ts";
import type { Clock } from "../runtime/clock.ts";

/** The functions of the store that the planner records with. */
export type PlannerStore = {
  /**
   * Records a batch in one transaction: for each gang its admission, its allocations and sums, the job's new status and
   * the event, or nothing. Returns the outcomes in the order of the records. If it throws `UnavailableError`, the batch
   * may have been recorded; if it throws anything else, nothing of it was.
   */
  readonly recordAdmissions: (batch: AdmissionBatch) => Promise<readonly AdmitOutcome[]>;
  /**
   * Requests that these admissions are undone, for the workers to carry out, and returns the jobs whose request is
   * recorded. Leaves out those that are no longer live, and those of queues that no longer drain.
   */
  readonly recordEvictions: (
    evictions: readonly PlannedEviction[],
    plannerEpoch: number,
    nowMs: number,
  ) => Promise<readonly string[]>;
  /**
   * Records preemptions: of each one the nomination and the requests to undo its victims, for the workers to carry out,
   * or nothing. Returns the outcomes in the order of the records.
   */
  readonly recordPreemptions: (
    records: readonly PreemptionRecord[],
    plannerEpoch: number,
    nowMs: number,
  ) => Promise<readonly PreemptOutcome[]>;
  /** Ends the nominations of these jobs, and returns those that had one. */
  readonly recordWithdrawals: (
    jobUids: readonly string[],
    plannerEpoch: number,
    nowMs: number,
  ) => Promise<readonly string[]>;
  /**
   * Keeps the causes of refusals for ExplainJob, without their numbers. A job's own record and version change only if
   * the dominant reason did. Returns the jobs that have moved on since they were planned, whose refusals were not
   * recorded.
   */
  readonly recordRefusals: (
    refusals: readonly ReportedRefusal[],
    plannerEpoch: number,
    nowMs: number,
  ) => Promise<readonly string[]>;
};

/** The functions of the store that the planner's state follows. */
export type FleetStore = {
  /** Reads on from a place, a bounded part. Null: from the beginning. */
  readonly readFleet: (place: FleetPlace | null, known: KnownFleet) => Promise<FleetRead>;
  /** The gangs of these jobs as they are now. */
  readonly gangsOf: (jobUids: readonly string[]) => Promise<readonly GangUpdate[]>;
  /** A page of the causes that are recorded, of jobs whose uids come after `after`. */
  readonly recordedCauses: (after: string) => Promise<RecordedCauses>;
};

/** The functions of the store that the explainer reads. */
export type ExplainStore = {
  /** The kept refusal of a waiting job, and that of the head that it stands behind. Null: none is kept. */
  readonly refusalOf: (
    jobUid: string,
  ) => Promise<{ readonly refusal: KeptRefusal; readonly head: KeptRefusal | null; readonly atMs: number } | null>;
  /** The gang that stands in waiting lines of pools, and what they keep for it. Null: none does. */
  readonly gangInLine: () => Promise<{ readonly jobUid: string; readonly inLine: readonly AmountInLine[] } | null>;
  /** The gangs of these jobs as they are now. */
  readonly gangsNow: (jobUids: readonly string[]) => Promise<readonly PlanGang[]>;
};

export type RecordedCauses = {
  readonly causes: readonly { readonly jobUid: string; readonly causeKey: number }[];
  /** Where the next page begins. Null: this is the last one. */
  readonly next: string | null;
};

/** The decisions of one round. */
export type FleetDecision = {
  readonly quotaEpoch: number;
  readonly plan: Pick<Plan, "admissions" | "inLine">;
  /** Every gang that the plan names, by uid. */
  readonly gangs: ReadonlyMap<string, PlannedGang>;
  /** Admissions to undo. */
  readonly evictions: readonly PlannedEviction[];
  /** Gangs for which others are to give way. */
  readonly preemptions: readonly PreemptionRecord[];
  /** The jobs whose nomination ends without an admission. */
  readonly withdrawn: readonly string[];
  /** Of gangs whose cause is new. */
  readonly refusals: readonly ReportedRefusal[];
  /** When time alone may change the plan. */
  readonly replanAtMs: number | null;
  /** True: the next round has more to decide at once. */
  readonly more: boolean;
  /** How many gangs wait in each queue. */
  readonly depths: ReadonlyMap<string, number>;
  /** How many gangs had a reservation before. */
  readonly reservations: number;
  /** The time that the decision took, without reading. */
  readonly planMs: number;
};

/** Decides about all gangs. It keeps its state between rounds, and may run in a thread of its own. */
export type FleetPlanner = {
  /**
   * Brings the state to the present, and decides. Loads the state anew for a new epoch. Throws the errors of the store;
   * `RoundStopped` if the lease was lost meanwhile.
   */
  readonly decide: (of: { readonly nowMs: number; readonly plannerEpoch: number }) => Promise<FleetDecision>;
  /** Reads these gangs again: this planner has recorded them, or another writer has changed them. */
  readonly reread: (jobUids: readonly string[]) => Promise<void>;
  /** Lets the next decision tell the refusals of these gangs again. */
  readonly sayAgain: (jobUids: readonly string[]) => Promise<void>;
  /** Compares the state with the store. Decisions go on meanwhile. A state that is wrong is loaded anew. */
  readonly check: () => Promise<StateCheck>;
  /** Forgets the state, because another process leads. */
  readonly rest: () => void;
};

/** The result of comparing the planner's state with the store. */
export type StateCheck = {
  /** The entities of which the state has missed a change, by their keys. Empty: it is right. */
  readonly wrong: readonly string[];
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
  readonly fleet: FleetPlanner;
  readonly quota: PlannerQuota;
  /** Called with each comparison of the state with the store, and the time that it took. */
  readonly onChecked?: (check: StateCheck & { readonly tookMs: number }) => void;
  /** Called with each decision. */
  readonly onPlanned?: (decision: Pick<FleetDecision, "planMs" | "depths" | "reservations">) => void;
  /** Called when a round finds that another planner leads. */
  readonly onRested?: () => void;
  /** The planner's lease: its epoch while this planner surely holds it, else null. */
  readonly lease: { readonly epoch: () => number | null };
  /** A hint to the worker that owns a job to look at it now. A lost hint only costs time. */
  readonly wakeJob: (jobUid: string) => void;
};
