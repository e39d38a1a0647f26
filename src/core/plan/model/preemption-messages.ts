import type { PreemptionReason } from "../../job/preemption.ts";
import { memberCount } from "../../job/roles.ts";
import { addedMembers, type MemberCounts } from "./gang.ts";

/** The reason of a job that waits until the gangs that are preempted for it have ended, and of the event about it. */
export const PREEMPTING = "Preempting";

/** The reason of the event and of the conditions of a job whose admission is undone for another gang. */
export const PREEMPTED = "Preempted";

/** The reason of the event of an elastic job that gives up members for another gang, and runs on. */
export const SHRINKS = "GivesUpMembers";

/** The reason of a job that has a reservation, and of the event about it. */
export const RESERVING = "Reserving";

/** The reason of a job that would be admitted but for a reservation of another job. */
export const KEPT_FOR_RESERVATION = "KeptForReservation";

/** How many jobs a message names at most. */
const NAMES_MAX = 5;

const WHY: Readonly<Record<PreemptionReason, string>> = {
  InClusterQueue: "which comes before it in the same queue",
  InCohortReclamation: "whose queue takes back its own quota",
  InCohortReclaimWhileBorrowing: "whose queue borrows too, and which has a higher priority",
  InCohortFairSharing: "whose queue has a smaller share",
  Reservation: "whose reservation needs what it has agreed to give back",
};

/** Why an admission is undone: `it was preempted for ml/train, whose queue takes back its own quota`. */
export function preemptedMessage(nominee: string, reason: PreemptionReason): string {
  return `it was preempted ${givesUpMessage(nominee, reason)}`;
}

/** Whom members are given up for: `for ml/train, whose queue takes back its own quota`. */
export function givesUpMessage(nominee: string, reason: PreemptionReason): string {
  return `for ${nominee}, ${WHY[reason]}`;
}

/** Whom a nominee waits for: `ml/train`, or `3 members of ml/train`, which keeps others. */
export function victimMessage(name: string, members: MemberCounts, keeps?: MemberCounts): string {
  const count = keeps === undefined ? 0 : memberCount(addedMembers(keeps, members));
  return count === 0 ? name : `${count} member${count === 1 ? "" : "s"} of ${name}`;
}

/** Why a nomination ends whose place another gang takes, as `namespace/name`. */
export function overtakenMessage(by: string): string {
  return `its place goes to ${by}, which comes before it in the same queue`;
}

/** Why a nominee waits that overtakes others. `holders`: `ml/low`, or `the reservation of ml/low`. */
export function takingOverMessage(cluster: string, holders: readonly string[]): string {
  const next = `it boards in cluster ${cluster} next`;
  return `${next}, with tokens that it takes over from ${listed(holders)}`;
}

/**
 * Why a nominee waits. `victims`: those that have not ended, as `namespace/name`. `passed`: the nominees whose places
 * it takes.
 */
export function preemptingMessage(
  cluster: string,
  victims: readonly string[],
  overtaken: readonly string[] = [],
): string {
  const place = overtaken.length === 0 ? "" : ` in the place of ${listed(overtaken)}`;
  const where = `it is nominated for cluster ${cluster}${place}`;
  if (victims.length === 0) return `${where}, and waits for no other gang any more`;
  return `${where}, and waits until the gangs that are preempted for it have ended: ${listed(victims)}`;
}

/**
 * Why a gang with a reservation waits. `victims`: those that have not ended. `startMs`: when they have at the latest.
 * 0: all of them are ending. Infinite: nobody knows.
 */
export function reservingMessage(cluster: string, victims: readonly string[], startMs: number): string {
  const where = `it has a reservation on cluster ${cluster}`;
  if (victims.length === 0) return `${where}, and the jobs that it waited for have ended`;
  return `${where}, and waits until these jobs have ended: ${listed(victims)}; ${startMessage(startMs)}`;
}

/** Why a gang waits that another one's reservation keeps out. */
export function reservedForMessage(holder: string, cluster: string, startMs: number): string {
  return `what it needs is kept for the reservation of ${holder} on cluster ${cluster}; ${startMessage(startMs)}`;
}

function startMessage(startMs: number): string {
  if (startMs === 0) return "it starts once the pods that end now are gone";
  if (!Number.isFinite(startMs)) return "nobody knows when it starts";
  return `it starts at ${new Date(startMs).toISOString()} at the latest`;
}

function listed(names: readonly string[]): string {
  const more = names.length - NAMES_MAX;
  return names.slice(0, NAMES_MAX).join(", ") + (more > 0 ? ` and ${more} more` : "");
}
