import { Heap } from "../../../runtime/heap.ts";
import type { Fleet } from "../fit/fleet.ts";
import type { PlannedPreemption } from "../model/preemption.ts";
import { type AskShape, unitsOf } from "../queues/ask-shape.ts";
import { compareAged, headOf } from "../queues/order.ts";
import { noteUnflavored, noteWaitedLong } from "../queues/queue-state.ts";
import type { GangClass, GangQueue, GangRecord, WaitedLong } from "../queues/records.ts";
import { type NomineeParts, reserve, reserveAfterMs } from "./decide-reservation.ts";
import { NO_POOL, poolsOf, ReservationPlaces } from "./reservation-places.ts";

/** So many gangs at most are looked at in one round. */
const LOOKS_MAX = 64;

const NEVER = Number.POSITIVE_INFINITY;

type Candidate = { readonly gangClass: GangClass; readonly gang: GangRecord };

/** `recheckAtMs`: when the next gang has waited long enough. Infinite: none will have. */
type NewReservations = { readonly made: readonly PlannedPreemption[]; readonly recheckAtMs: number };

/**
 * Gives reservations to gangs that the round has refused and that have waited long enough, in their order, as long as
 * their pools have places for more. A job's waiting age counts from its creation, so it keeps it when it is preempted
 * or moves.
 */
export function newReservations(of: NomineeParts): NewReservations {
  const places = new ReservationPlaces(of.round.reservationsPerPool, of.round.reserved.kept);
  const { candidates, recheckAtMs } = candidatesOf(of, places);
  const made: PlannedPreemption[] = [];
  for (const { gangClass, gang } of candidates) {
    let mayClose = false;
    const found = of.reservations.find(gangClass, gang, ({ requested }) => {
      mayClose ||= poolsOf(requested).some((pool) => places.hasOne(pool));
      return places.hasAll(requested);
    });
    // Beside reservations that never end coming, a wide gang would never find capacity for its own.
    if (found === null && mayClose) for (const pool of poolsWithout(of, gangClass, gang)) places.closed.add(pool);
    const planned = found === null ? null : reserve(of, found, null);
    if (found === null || planned === null) continue;
    places.take(found.asking.requested);
    made.push(planned);
  }
  return { made, recheckAtMs };
}

/** The pools of the reservation that a gang would get if there were no others. */
function poolsWithout(
  { round, reservations }: NomineeParts,
  gangClass: GangClass,
  gang: GangRecord,
): readonly string[] {
  const { reserved } = round;
  if (!reserved.kept.some(({ excluded }) => !excluded)) return [];
  const found = reserved.without(reserved.kept, () => reservations.find(gangClass, gang));
  return found === null ? [] : poolsOf(found.asking.requested);
}

/** The first gangs, in their order over all queues, that were refused and have waited long enough. */
function candidatesOf(of: NomineeParts, places: ReservationPlaces) {
  const { nowMs } = of.round;
  const all = waitedLongIn(of, places);
  const recheckAtMs = all.reduce((least, { nextMs }) => Math.min(least, nextMs), NEVER);
  const open = all.filter(({ classes }) => classes.length > 0).map(({ classes }) => ({ classes, at: 0 }));
  const first = ({ classes, at }: (typeof open)[number]) => headOf(classes[at] as GangClass) as GangRecord;
  const order = new Heap(open, (a, b) => compareAged(first(a), first(b), nowMs) < 0);
  const candidates: Candidate[] = [];
  for (let next = order.peek(); next !== undefined && candidates.length < LOOKS_MAX; next = order.peek()) {
    candidates.push({ gangClass: next.classes[next.at] as GangClass, gang: first(next) });
    next.at += 1;
    if (next.at < next.classes.length) order.settle();
    else order.pop();
  }
  return { candidates, recheckAtMs };
}

/** By queue, for those that may get reservations. The others wait for a change, not for a time. */
function waitedLongIn({ round, running }: NomineeParts, places: ReservationPlaces): readonly WaitedLong[] {
  const { fleet, nowMs } = round;
  const all: WaitedLong[] = [];
  const open = new Set([...fleet.quota.branches.flavors, NO_POOL].filter((pool) => places.hasOne(pool)));
  if (open.size === 0) return all;
  for (const gangQueue of fleet.queues.all.values()) {
    if (!hasPlace(fleet, gangQueue, open)) continue;
    const afterMs = reserveAfterMs(fleet, gangQueue);
    if (
      gangQueue.stop !== null ||
      gangQueue.reserved !== null ||
      afterMs === 0 ||
      running.fullAt(gangQueue.name) !== null
    )
      continue;
    const at = { afterMs, nowMs };
    all.push(fleet.isStrict(gangQueue.name) ? headOnly(gangQueue, at) : waitedIn(gangQueue, at));
  }
  return all;
}

/** True if some pool that a queue's gangs may use is among those with a place. */
function hasPlace({ quota, resources }: Fleet, gangQueue: GangQueue, open: ReadonlySet<string>): boolean {
  if (open.has(NO_POOL)) {
    if (gangQueue.hasUnflavored === null) {
      noteUnflavored(
        gangQueue,
        [...gangQueue.classes.values()].some(({ shape }) => isUnflavored(shape, resources)),
      );
    }
    if (gangQueue.hasUnflavored) return true;
    if (open.size === 1) return false;
  }
  const quotas = quota.queues.get(gangQueue.name)?.quotas ?? [];
  return quotas.some(({ flavor }) => open.has(flavor));
}

/** True if a gang, with all its members or the fewest, requests no flavored resource. */
function isUnflavored({ all, fewest }: AskShape, resources: readonly string[]): boolean {
  return isEmpty(unitsOf(all, resources)) || (fewest !== null && isEmpty(unitsOf(fewest, resources)));
}

function isEmpty(units: Readonly<Record<string, number>>): boolean {
  for (const _ in units) return false;
  return true;
}

type At = { readonly afterMs: number; readonly nowMs: number };

/** The gang classes of a queue whose first gangs may get reservations: no more of them than one round looks at. */
function waitedIn(gangQueue: GangQueue, { afterMs, nowMs }: At): WaitedLong {
  const known = gangQueue.waitedLong;
  if (known !== null && nowMs >= known.fromMs && nowMs < known.nextMs) return known;
  const found = waitedOf(gangQueue.classes.values(), { afterMs, nowMs });
  const inOrder = [...found.classes].sort((a, b) =>
    compareAged(headOf(a) as GangRecord, headOf(b) as GangRecord, nowMs),
  );
  const waited = { ...found, classes: inOrder.slice(0, LOOKS_MAX) };
  noteWaitedLong(gangQueue, waited);
  return waited;
}

function headOnly({ head }: GangQueue, at: At): WaitedLong {
  return waitedOf(head === null ? [] : [head], at);
}

/** The gang classes that were refused. One that a reservation keeps out waits for that. */
function waitedOf(classes: Iterable<GangClass>, { afterMs, nowMs }: At): WaitedLong {
  const waited: GangClass[] = [];
  let nextMs = NEVER;
  for (const gangClass of classes) {
    const gang = headOf(gangClass);
    if (gang === undefined || gangClass.full !== null || gangClass.refusal === null) continue;
    const fromMs = gang.facts.createTimeMs + afterMs;
    if (fromMs <= nowMs) waited.push(gangClass);
    else nextMs = Math.min(nextMs, fromMs);
  }
  return { classes: waited, fromMs: nowMs, nextMs };
}
