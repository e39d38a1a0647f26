/** Why a job waits: the reason that the planner has recorded, with the numbers of the state as it is. */
import type { PlanGang } from "../model/plan-gang.ts";
import type { AmountInLine, Refusal } from "../model/plan-types.ts";
import type { HeldByCaller } from "../model/snapshot.ts";
import type { Round } from "../preempt/round.ts";
import { nomineesOf, withNominees } from "../round/pending-use.ts";
import type { FleetPlan } from "../round/run-round.ts";
import type { Reservation } from "../usage/quota-state.ts";
import { type KeptRefusal, keyedReason, type ReportedRefusal } from "./kept-reason.ts";
import { RefusalMessages } from "./refusal-messages.ts";
import { changed, withHead } from "./refuse.ts";

/** A job's recorded refusal, and everything that its answer needs beside the state. */
export type AskedWhy = {
  readonly refusal: KeptRefusal;
  /** The refusal of the head of its strict queue. Null: it does not wait behind one. */
  readonly head: KeptRefusal | null;
  /** The gangs that the refusals name, as they are now. */
  readonly gangs: ReadonlyMap<string, PlanGang>;
  /** The gang in the waiting lines of pools, and what these keep for it. Null: there is none. */
  readonly first: { readonly gang: PlanGang; readonly inLine: readonly AmountInLine[] } | null;
};

/**
 * The clusters whose capacity must be up to date for an answer: those that it names, and those that nominees wait for.
 */
export function clustersAsked({ fleet }: Round, { refusal, head }: AskedWhy): ReadonlySet<string> {
  const named = [refusal.cause, head?.cause].flatMap((cause) => {
    return cause?.kind === "lacks" ? cause.refusal.clusters.all.map(({ cluster }) => cluster) : [];
  });
  const kept = nomineesOf(fleet).flatMap(({ facts }) => facts.nomination?.cluster ?? []);
  return new Set([...named, ...kept]);
}

/** Says why a job waits, beside what the planner keeps for nominees. `callers`: those that hold tokens. */
export function explain(round: Round, asked: AskedWhy, callers: readonly HeldByCaller[]): Refusal {
  const { refusal, head, gangs } = asked;
  const { fleet } = round;
  return withNominees(round, (pendingUse) => {
    const messages = new RefusalMessages(fleet, { callers, admissions: [], pendingUse });
    const messageOf = (kept: KeptRefusal): Refusal => {
      const gang = gangs.get(kept.jobUid);
      return gang === undefined || kept.cause === undefined ? kept : messages.refusalOf(gang, kept.cause);
    };
    const own = fleet.quota.whileReserved(reservationOf(asked), () => messageOf(refusal));
    if (refusal.cause?.kind !== "behindHead") return own;
    if (gangs.get(refusal.cause.head.uid)?.waits !== true) return changed(own);
    return head === null ? own : withHead(own, messageOf(head));
  });
}

function reservationOf({ first }: AskedWhy): Reservation | null {
  if (first === null || !first.gang.waits) return null;
  const { uid, namespace, name, priority } = first.gang;
  const amounts = new Map(first.inLine.map(({ pool, amount }) => [pool, amount]));
  return { jobUid: uid, holder: `${namespace}/${name}`, priority, amounts };
}

/**
 * The messages for the refusals of a round, each with its reason. The round must not have given back yet what it took.
 */
export function refusalsIn(
  { refused, admissions }: Pick<FleetPlan, "refused" | "admissions">,
  { fleet, pendingUse }: Round,
  callers: readonly HeldByCaller[],
): readonly ReportedRefusal[] {
  const messages = new RefusalMessages(fleet, { callers, admissions, pendingUse });
  return refused.map(({ gang, cause }) => ({ refusal: messages.refusalOf(gang, cause), ...keyedReason(cause) }));
}
