import type { PlannedPreemption } from "../preemption.ts";
import type { RunningJobs } from "../running-jobs.ts";
import type { PoolAmounts } from "./branch-use.ts";
import type { DecideLane } from "./decide-lane.ts";
import type { FindReservations } from "./find-reservations.ts";
import type { FindVictims } from "./find-victims.ts";
import { type Entry, headOf, type Lane, type Line } from "./gang-lines.ts";
import { setLifted } from "./kept-room.ts";
import { compareAged } from "./line-ageing.ts";
import { reserve, reserveAfterMs } from "./nominees.ts";
import type { Parts } from "./state-parts.ts";

/** So many gangs at most are looked at in one round. */
const LOOKS_MAX = 64;

type Of = {
  readonly parts: Parts;
  readonly decide: DecideLane;
  readonly victims: FindVictims;
  readonly running: RunningJobs;
  readonly reservations: FindReservations;
};

const NEVER = Number.POSITIVE_INFINITY;

type Candidate = { readonly lane: Lane; readonly entry: Entry; readonly fromMs: number };

/** `recheckAtMs`: when the next gang has waited long enough. Infinite: none will have. */
type NewReservations = { readonly made: readonly PlannedPreemption[]; readonly recheckAtMs: number };

/**
 * Gives reservations to gangs that the round has refused and that have waited long enough, in their order, as long as
 * their pools have places for more. A job's waiting age counts from its creation, so it keeps it when it is preempted
 * or moves.
 */
export function newReservations(of: Of, at: { readonly nowMs: number; readonly perPool: number }): NewReservations {
  const { parts, reservations } = of;
  const places = new Map<string, number>();
  const take = (wants: PoolAmounts) => {
    for (const pool of poolsOf(wants)) places.set(pool, (places.get(pool) ?? 0) + 1);
  };
  for (const { wants } of parts.kept) take(wants);
  const closed = new Set<string>();
  const isOpen = ({ wants }: { readonly wants: PoolAmounts }) =>
    poolsOf(wants).every((pool) => (places.get(pool) ?? 0) < at.perPool && !closed.has(pool));
  const { candidates, recheckAtMs } = candidatesOf(of, at.nowMs);
  const made: PlannedPreemption[] = [];
  for (const { lane, entry } of candidates.slice(0, LOOKS_MAX)) {
    const found = reservations.find(lane, entry, isOpen);
    // Beside reservations that never end coming, a wide gang would never find room for its own.
    if (found === null) for (const pool of poolsWithout(of, lane, entry)) closed.add(pool);
    const planned = found === null ? null : reserve(of, found, null);
    if (found === null || planned === null) continue;
    take(found.asking.wants);
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

function candidatesOf({ parts, running }: Of, nowMs: number) {
  const refused = [...parts.lines.lines.values()].flatMap((line) => {
    const isOpen = line.stop === null && line.reserved === null && running.fullAt(line.name) === null;
    const afterMs = reserveAfterMs(parts, line);
    if (!isOpen || afterMs === 0) return [];
    const lanes = parts.isStrict(line.name) ? headLane(line) : [...line.lanes.values()];
    return lanes.flatMap((lane) => refusedIn(lane, afterMs));
  });
  const candidates = refused.filter(({ fromMs }) => fromMs <= nowMs);
  const recheckAtMs = refused.reduce((least, { fromMs }) => (fromMs > nowMs ? Math.min(least, fromMs) : least), NEVER);
  return { candidates: candidates.sort((a, b) => compareAged(a.entry, b.entry, nowMs)), recheckAtMs };
}

/**
 * The first gang of a lane that was refused, and when it has waited long enough. One that a reservation keeps out waits
 * for that.
 */
function refusedIn(lane: Lane, afterMs: number): readonly Candidate[] {
  const entry = headOf(lane);
  if (entry === undefined || lane.full !== null || lane.refusal === null) return [];
  return [{ lane, entry, fromMs: entry.gang.createTimeMs + afterMs }];
}

function headLane({ head }: Line): readonly Lane[] {
  return head === null ? [] : [head];
}

/** A gang that requests no flavor counts for none of the pools. */
function poolsOf(wants: PoolAmounts): readonly string[] {
  const pools = [...wants].filter(([, amount]) => amount > 0).map(([pool]) => pool);
  return pools.length === 0 ? [""] : pools;
}
