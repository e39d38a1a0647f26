/** What is kept for nominees until their victims have left. */
import { compareEntries } from "./entry-order.ts";
import { type BookedGang, FindVictims } from "./find-victims.ts";
import type { FleetParts } from "./fleet-parts.ts";
import type { Entry } from "./gang-lines.ts";
import { ownLane } from "./new-lane.ts";
import { namedRoom } from "./nominees.ts";
import type { QuotaRise } from "./quota-levels.ts";
import { wantsOf } from "./requests.ts";

/** Charges a gang with what it takes of a pool beside the tokens that it holds. */
export function chargeRest(parts: FleetParts, { gang, account }: Entry, pool: string, amount: number): void {
  const held = parts.holdsOf(gang.uid)?.[pool] ?? 0;
  parts.quota.charge(account, pool, amount - Math.min(amount, held));
}

/** How much more each level would use if these gangs had what they lack. */
export function riseOfBooked(parts: FleetParts, booked: readonly BookedGang[]): QuotaRise {
  return parts.quota.riseOf(() => {
    for (const { entry, uses } of booked) for (const [pool, amount] of uses) chargeRest(parts, entry, pool, amount);
  });
}

/** The gangs for which others are preempted. */
export function nomineesOf({ lines }: Pick<FleetParts, "lines">): readonly Entry[] {
  const isNominee = ({ gang: { nomination } }: Entry) =>
    nomination !== undefined && nomination.reservation === undefined;
  return [...lines.nominees].filter(isNominee).sort(compareEntries);
}

/**
 * Calls back while the state has what a round keeps for nominees, as it has for the words of a round. The rooms of the
 * clusters that they are nominated for must be up to date.
 */
export function besideNominees<T>(parts: FleetParts, nowMs: number, read: () => T): T {
  const nominees = nomineesOf(parts);
  if (nominees.length === 0) return read();
  const { quota } = parts;
  const { mark } = quota;
  const undoRooms = parts.markRooms();
  const victims = new FindVictims(parts, nowMs);
  try {
    for (const entry of nominees) {
      const named = namedRoom(parts, ownLane(entry), entry.gang);
      if (named === null) continue;
      victims.charge(entry, wantsOf(named.request, parts.resources));
      victims.occupy(named);
    }
    quota.undo(mark);
    parts.booked = riseOfBooked(parts, victims.booked);
    return read();
  } finally {
    parts.booked = [];
    quota.undo(mark);
    undoRooms();
  }
}
