import { doublingMs } from "../../runtime/doubling.ts";

/** It starts low: the gang did nothing wrong, and pods that end take longer than the first waits. */
const BACKOFF = { firstMs: 1_000, longestMs: 600_000 };
/** The longest backoff after a preemption. */
export const AFTER_PREEMPTION_MS_MAX = BACKOFF.longestMs;

/** How long a job waits after it has been preempted this many times. Each preemption doubles the wait. */
export function preemptionBackoffMs(preemptions: number): number {
  return preemptions === 0 ? 0 : doublingMs(BACKOFF, preemptions - 1);
}

/** Why a gang is preempted: the reasons of the condition `Preempted`. All except the last are Kueue's. */
export type PreemptionReason =
  /** For a gang of its own queue. */
  | "InClusterQueue"
  /** Its queue borrows, and the nominee's queue takes back its own quota. */
  | "InCohortReclamation"
  /** Its queue borrows, and so does the nominee's, which has a higher priority. */
  | "InCohortReclaimWhileBorrowing"
  /** Its queue has a greater share than the nominee's. */
  | "InCohortFairSharing"
  /** For a reservation: the job allows this by `backfill`. Kueue has no counterpart. */
  | "Reservation";

/** The facts of a nomination that is a reservation: only gangs of jobs with `backfill` are preempted for it. */
export type ReservationFacts = {
  /** When the job got its first reservation. A reservation that moves to another cluster keeps this. */
  readonly sinceMs: number;
  /** True: the quota that its victims use is reserved for it, too. False: it borrows from others. */
  readonly keepsQuota: boolean;
};

/**
 * The record of a nominee's job while its victims end. It holds until the job is admitted, suspended or ends, or until
 * its size or priority changes. `nominationOf` returns it only until then.
 */
export type Nomination = {
  readonly cluster: string;
  /** The chosen flavors, as an admission has them. */
  readonly flavors: Readonly<Record<string, string>>;
  /** All members that it will have, by replica type. */
  readonly members: Readonly<Record<string, number>>;
  /** The generation of the gang that the record of its nomination began. */
  readonly generation: number;
  /** The gangs whose end it waits for. If a gang `keeps` members, it waits only for the end of the others. */
  readonly victims: readonly {
    readonly jobUid: string;
    readonly admission: number;
    readonly keeps?: Readonly<Record<string, number>>;
  }[];
  /** Omitted: it is no reservation, and its victims are preempted. */
  readonly reservation?: ReservationFacts;
  readonly sinceMs: number;
};
