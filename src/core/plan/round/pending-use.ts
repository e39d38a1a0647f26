/** What is kept for nominees until their victims have left. */

import { markCapacities } from "../capacity/cluster-state.ts";
import type { Fleet } from "../fit/fleet.ts";
import { requestsOf } from "../fit/requests.ts";
import type { PendingGang } from "../preempt/find-victims.ts";
import type { Round } from "../preempt/round.ts";
import { ownClass } from "../queues/gang-class.ts";
import { compareGangs } from "../queues/order.ts";
import type { GangRecord } from "../queues/records.ts";
import { namedTry } from "../reservations/decide-reservation.ts";
import type { QuotaRise } from "../usage/quota-levels.ts";

/** Charges a gang with what it takes of a pool beside the tokens that it holds. */
export function chargeRest(fleet: Fleet, { facts, account }: GangRecord, pool: string, amount: number): void {
  const held = fleet.holdsOf(facts.uid)?.[pool] ?? 0;
  fleet.quota.charge(account, pool, amount - Math.min(amount, held));
}

/** How much more each level would use if these gangs had what they lack. */
export function riseOfPending(fleet: Fleet, pending: readonly PendingGang[]): QuotaRise {
  return fleet.quota.riseOf(() => {
    for (const { gang, uses } of pending) for (const [pool, amount] of uses) chargeRest(fleet, gang, pool, amount);
  });
}

/** The gangs for which others are preempted. */
export function nomineesOf({ queues }: Pick<Fleet, "queues">): readonly GangRecord[] {
  const isNominee = ({ facts: { nomination } }: GangRecord) =>
    nomination !== undefined && nomination.reservation === undefined;
  return [...queues.nominees].filter(isNominee).sort(compareGangs);
}

/**
 * Calls back while nodes have what a round keeps for nominees, as they have for the messages of a round, with what the
 * nominees lack of quotas. The capacities of the clusters that they are nominated for must be up to date.
 */
export function withNominees<T>(round: Round, read: (pendingUse: QuotaRise) => T): T {
  const { fleet, victims } = round;
  const nominees = nomineesOf(fleet);
  if (nominees.length === 0) return read([]);
  const { quota } = fleet;
  const { mark } = quota;
  const undoPlacements = markCapacities(fleet.clusters.values());
  try {
    for (const gang of nominees) {
      const named = namedTry(round, ownClass(gang), gang.facts);
      if (named === null) continue;
      victims.charge(gang, requestsOf(named.request, fleet.resources));
      victims.occupy(named);
    }
    quota.undo(mark);
    return read(riseOfPending(fleet, victims.pending));
  } finally {
    quota.undo(mark);
    undoPlacements();
  }
}
