import { invariant } from "../../../runtime/assert.ts";
import type { Nomination, PreemptionReason } from "../../job/preemption.ts";
import type { MemberCounts } from "./gang.ts";
import type { PlanGang } from "./plan-gang.ts";
import type { PlannedAdmission } from "./plan-types.ts";

/** A running gang that is to be preempted. The number of its admission and its members guard the record. */
export type PlannedVictim = {
  readonly jobUid: string;
  readonly queue: string;
  readonly admission: number;
  readonly members: MemberCounts;
  /** The members that an elastic gang keeps: it runs on with them. Omitted: it is preempted whole. */
  readonly keeps?: MemberCounts;
  /** The digest of its tree of queues. Omitted: it gives up members, or is taken back. */
  readonly treeDigest?: string;
  readonly reason: PreemptionReason;
};

/** A gang for which others are preempted: the nominee. */
export type PlannedPreemption = {
  /** The admission that the nominee gets once its victims are gone. Its ask hash and generation guard the record. */
  readonly planned: PlannedAdmission;
  readonly victims: readonly PlannedVictim[];
  /** Omitted: its victims free capacity for it, and it is no reservation. */
  readonly reservation?: PlannedReservation;
  /** The gangs that it overtakes, and whose tokens it takes over. Omitted: none. */
  readonly takesOver?: readonly OvertakenGang[];
};

/**
 * A waiting gang that another one overtakes: one with a reservation, which it keeps, or a nominee, which is none any
 * more. `admission`: the number of the one that it was to get.
 */
export type OvertakenGang = {
  readonly jobUid: string;
  readonly admission: number;
  /** The digest of its tree of queues. Omitted: it has a reservation. */
  readonly treeDigest?: string;
  /** The victims for which the nominee still waits. Omitted: it has a reservation. */
  readonly victims?: Nomination["victims"];
};

/** A waiting gang that is overtaken, and stays what it is. */
export function asOvertaken({ facts }: { readonly facts: Pick<PlanGang, "uid" | "lastAdmission"> }): OvertakenGang {
  return { jobUid: facts.uid, admission: facts.lastAdmission + 1 };
}

/** A reservation that is new, moves, or waits for other gangs than its record says. */
export type PlannedReservation = {
  /** When it began. Null: it is new. */
  readonly sinceMs: number | null;
  readonly keepsQuota: boolean;
  /** The running gangs whose end it waits for, beside its victims. */
  readonly awaits: Nomination["victims"];
};

/**
 * The nomination that a nominee's job records. It waits for its victims to end, for the gangs that its reservation
 * awaits, and for the victims of nominees that it overtakes.
 */
export function nominationBy(preemption: PlannedPreemption, nowMs: number): Nomination {
  const { planned, victims, reservation, takesOver = [] } = preemption;
  const { cluster, flavors, members, generation } = planned;
  invariant(cluster !== null, "a job without pods preempts no gang");
  const overtaken = takesOver.flatMap(({ victims }) => victims ?? []);
  const awaited: Nomination["victims"] = [...victims, ...(reservation?.awaits ?? []), ...overtaken];
  return {
    cluster,
    flavors,
    members,
    generation: generation + 1,
    victims: awaited.map(({ jobUid, admission, keeps }) => ({ jobUid, admission, ...(keeps && { keeps }) })),
    ...(reservation && {
      reservation: { sinceMs: reservation.sinceMs ?? nowMs, keepsQuota: reservation.keepsQuota },
    }),
    sinceMs: nowMs,
  };
}

/** True while a victim runs, or holds tokens or pods that it is to give up. */
export function isLeft({ admissions }: Pick<PlanGang, "admissions">, victim: Nomination["victims"][number]): boolean {
  const admission = admissions.find(({ number }) => number === victim.admission);
  if (admission === undefined || (admission.tokensReleasedMs !== null && admission.goneMs !== null)) return false;
  const { keeps } = victim;
  if (keeps === undefined || admission.state !== "live") return true;
  return Object.entries(admission.members).some(([role, count]) => count > (keeps[role] ?? count));
}

/** A preemption that is ready to be recorded. */
export type PreemptionRecord = PlannedPreemption & {
  /** The nominee's queue. */
  readonly queue: string;
};

/** How the record of one preemption of a batch ended. */
export type PreemptOutcome =
  /** `evicted`: the victims whose admissions no request was to undo before. */
  | { readonly kind: "recorded"; readonly evicted: readonly PlannedVictim[] }
  /** The nominee, a victim or the planner's lease has moved on, and nothing of it is recorded: plan again. */
  | { readonly kind: "stale" };
