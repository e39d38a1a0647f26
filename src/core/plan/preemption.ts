import { invariant } from "../../runtime/assert.ts";
import type { Nomination, PreemptionReason } from "../job/preemption.ts";
import type { MemberCounts } from "./gang.ts";
import type { PlanGang } from "./plan-gang.ts";
import type { PlannedAdmission } from "./plan-types.ts";

/** A running gang that is to give way. The number of its admission and its members guard the record. */
export type PlannedVictim = {
  readonly jobUid: string;
  readonly queue: string;
  readonly admission: number;
  readonly members: MemberCounts;
  /** The members that an elastic gang keeps: it runs on with them. Omitted: it gives way whole. */
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
  /** Omitted: its victims make room for it, and it is no reservation. */
  readonly reservation?: PlannedReservation;
  /**
   * The reservations that it passes and that hold tokens which it needs, with the admissions that they are for. It has
   * no victims then, and boards as soon as it has these tokens. Omitted: none.
   */
  readonly takesOver?: readonly { readonly jobUid: string; readonly admission: number }[];
};

/** A reservation that is new, moves, or waits for other gangs than its record says. */
export type PlannedReservation = {
  /** When it began. Null: it is new. */
  readonly sinceMs: number | null;
  readonly keepsQuota: boolean;
  /** The running gangs whose end it waits for, beside its victims. */
  readonly awaits: Nomination["victims"];
};

/** What the nominee's job records: it waits for the end of its victims, and of the gangs its reservation awaits. */
export function nominationBy({ planned, victims, reservation }: PlannedPreemption, nowMs: number): Nomination {
  const { cluster, flavors, members, generation } = planned;
  invariant(cluster !== null, "a job without pods preempts no gang");
  const awaited: Nomination["victims"] = [...victims, ...(reservation?.awaits ?? [])];
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
