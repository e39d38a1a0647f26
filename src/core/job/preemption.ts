import { doublingMs } from "../../runtime/doubling.ts";

/** It starts low: the gang did nothing wrong, and pods that end take longer than the first waits. */
const BACKOFF = { firstMs: 1_000, longestMs: 600_000 };
/** The longest backoff after a preemption. */
export const AFTER_PREEMPTION_MS_MAX = BACKOFF.longestMs;

/** How long a job waits that was preempted so often. Each preemption doubles the wait. 0: it was not. */
export function preemptionBackoffMs(preemptions: number): number {
  return preemptions === 0 ? 0 : doublingMs(BACKOFF, preemptions - 1);
}

/** Why a gang is preempted, in Kueue's words but for the last: they are the reasons of the condition `Preempted`. */
export type PreemptionReason =
  /** For a gang of its own queue. */
  | "InClusterQueue"
  /** Its queue borrows, and the nominee's queue takes back its own quota. */
  | "InCohortReclamation"
  /** Its queue borrows, and so does the nominee's, which has a higher priority. */
  | "InCohortReclaimWhileBorrowing"
  /** Its queue has a greater share than the nominee's. */
  | "InCohortFairSharing"
  /** It has agreed to be taken back for a reservation. Kueue has no such reason. */
  | "Reservation";

/** What makes a nomination a reservation: nobody is preempted for it but gangs that agreed to be taken back. */
export type ReservationFacts = {
  /** When the job got its first reservation. One that moves to another cluster keeps this. */
  readonly sinceMs: number;
  /** True: what its victims use of quotas is kept for it, too. False: it borrows from others. */
  readonly keepsQuota: boolean;
};

/**
 * What a nominee's job records while its victims end. It ends when the job is admitted, suspended or ends, or when its
 * size or priority changes. `nominationOf` returns it only until then.
 */
export type Nomination = {
  readonly cluster: string;
  /** The chosen flavor of each flavored resource. */
  readonly flavors: Readonly<Record<string, string>>;
  /** All members that it is to have, by replica type. */
  readonly members: Readonly<Record<string, number>>;
  /** The gang's generation as a nominee: the one that the record of its nomination began. */
  readonly generation: number;
  /** The gangs whose end it waits for; of one that `keeps` members, it waits until the others have ended. */
  readonly victims: readonly {
    readonly jobUid: string;
    readonly admission: number;
    readonly keeps?: Readonly<Record<string, number>>;
  }[];
  /** Omitted: it is no reservation, and its victims are preempted. */
  readonly reservation?: ReservationFacts;
  readonly sinceMs: number;
};
