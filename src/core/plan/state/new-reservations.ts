import type { PlannedPreemption } from "../preemption.ts";
import type { RunningJobs } from "../running-jobs.ts";
import { type AskShape, unitsOf } from "./ask-shape.ts";
import type { DecideLane } from "./decide-lane.ts";
import type { FindReservations } from "./find-reservations.ts";
import type { FindVictims } from "./find-victims.ts";
import { type Entry, headOf, type Lane, type Line, type WaitedLong } from "./gang-lines.ts";
import { Heap } from "./heap.ts";
import { setLifted } from "./kept-room.ts";
import { compareAged } from "./line-ageing.ts";
import { reserve, reserveAfterMs } from "./nominees.ts";
import { NO_POOL, poolsOf, ReservationPlaces } from "./reservation-places.ts";
import type { Parts } from "./state-parts.ts";

/** So many gangs at most are looked at in one round. */
const LOOKS_MAX = 64;

type Of = {
  readonly parts: Parts;
  readonly decide: DecideLane;
  readonly victims: FindVictims;
  readonly running: RunningJobs;
  readonly reservations: FindReservations;
  readonly nowMs: number;
  readonly perPool: number;
};

const NEVER = Number.POSITIVE_INFINITY;

type Candidate = { readonly lane: Lane; readonly entry: Entry };

/** `recheckAtMs`: when the next gang has waited long enough. Infinite: none will have. */
type NewReservations = { readonly made: readonly PlannedPreemption[]; readonly recheckAtMs: number };

/**
 * Gives reservations to gangs that the round has refused and that have waited long enough, in their order, as long as
 * their pools have places for more. A job's waiting age counts from its creation, so it keeps it when it is preempted
 * or moves.
 */
export function newReservations(of: Of): NewReservations {
  const places = new ReservationPlaces(of.perPool, of.parts.kept);
  const { candidates, recheckAtMs } = candidatesOf(of, places);
  const made: PlannedPreemption[] = [];
  for (const { lane, entry } of candidates) {
    let mayClose = false;
    const found = of.reservations.find(lane, entry, ({ wants }) => {
      mayClose ||= poolsOf(wants).some((pool) => places.hasOne(pool));
      return places.hasAll(wants);
    });
    // Beside reservations that never end coming, a wide gang would never find room for its own.
    if (found === null && mayClose) for (const pool of poolsWithout(of, lane, entry)) places.closed.add(pool);
    const planned = found === null ? null : reserve(of, found, null);
    if (found === null || planned === null) continue;
    places.take(found.asking.wants);
    made.push(planned);
  }
  return { made, recheckAtMs };
}

/** The pools of the reservation that a gang would get if there were no others. */
function poolsWithout({ parts, reservations }: Of, lane: Lane, entry: Entry): readonly string[] {
  const kept = parts.kept.filter(({ lifted }) => !lifted);
  for (const one of kept) setLifted(parts, one, true);
  const found = kept.length === 0 ? null : reservations.find(lane, entry);
  for (const one of kept) setLifted(parts, one, false);
  return found === null ? [] : poolsOf(found.asking.wants);
}

/** The first gangs, in their order over all queues, that were refused and have waited long enough. */
function candidatesOf(of: Of, places: ReservationPlaces) {
  const { nowMs } = of;
  const all = waitedLongIn(of, places);
  const recheckAtMs = all.reduce((least, { nextMs }) => Math.min(least, nextMs), NEVER);
  const open = all.filter(({ lanes }) => lanes.length > 0).map(({ lanes }) => ({ lanes, at: 0 }));
  const first = ({ lanes, at }: (typeof open)[number]) => headOf(lanes[at] as Lane) as Entry;
  const order = new Heap(open, (a, b) => compareAged(first(a), first(b), nowMs) < 0);
  const candidates: Candidate[] = [];
  for (let next = order.peek(); next !== undefined && candidates.length < LOOKS_MAX; next = order.peek()) {
    candidates.push({ lane: next.lanes[next.at] as Lane, entry: first(next) });
    next.at += 1;
    if (next.at < next.lanes.length) order.settle();
    else order.pop();
  }
  return { candidates, recheckAtMs };
}

/** By queue, for those that may get reservations. The others wait for a change, not for a time. */
function waitedLongIn({ parts, running, nowMs }: Of, places: ReservationPlaces): readonly WaitedLong[] {
  const all: WaitedLong[] = [];
  const open = new Set([...parts.quota.branches.flavors, NO_POOL].filter((pool) => places.hasOne(pool)));
  if (open.size === 0) return all;
  for (const line of parts.lines.lines.values()) {
    if (!hasPlace(parts, line, open)) continue;
    const afterMs = reserveAfterMs(parts, line);
    if (line.stop !== null || line.reserved !== null || afterMs === 0 || running.fullAt(line.name) !== null) continue;
    const at = { afterMs, nowMs };
    all.push(parts.isStrict(line.name) ? headOnly(line, at) : waitedIn(line, at));
  }
  return all;
}

/** True if some pool that a queue's gangs may use is among those with a place. */
function hasPlace({ quota, resources }: Parts, line: Line, open: ReadonlySet<string>): boolean {
  if (open.has(NO_POOL)) {
    line.hasUnflavored ??= [...line.lanes.values()].some(({ shape }) => isUnflavored(shape, resources));
    if (line.hasUnflavored) return true;
    if (open.size === 1) return false;
  }
  const quotas = quota.queues.get(line.name)?.quotas ?? [];
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

/** The lanes of a queue whose first gangs may get reservations: no more of them than one round looks at. */
function waitedIn(line: Line, { afterMs, nowMs }: At): WaitedLong {
  const known = line.waitedLong;
  if (known !== null && nowMs >= known.fromMs && nowMs < known.nextMs) return known;
  const found = waitedOf(line.lanes.values(), { afterMs, nowMs });
  const inOrder = [...found.lanes].sort((a, b) => compareAged(headOf(a) as Entry, headOf(b) as Entry, nowMs));
  line.waitedLong = { ...found, lanes: inOrder.slice(0, LOOKS_MAX) };
  return line.waitedLong;
}

function headOnly({ head }: Line, at: At): WaitedLong {
  return waitedOf(head === null ? [] : [head], at);
}

/** The lanes that were refused. One that a reservation keeps out waits for that. */
function waitedOf(lanes: Iterable<Lane>, { afterMs, nowMs }: At): WaitedLong {
  const waited: Lane[] = [];
  let nextMs = NEVER;
  for (const lane of lanes) {
    const entry = headOf(lane);
    if (entry === undefined || lane.full !== null || lane.refusal === null) continue;
    const fromMs = entry.gang.createTimeMs + afterMs;
    if (fromMs <= nowMs) waited.push(lane);
    else nextMs = Math.min(nextMs, fromMs);
  }
  return { lanes: waited, fromMs: nowMs, nextMs };
}
