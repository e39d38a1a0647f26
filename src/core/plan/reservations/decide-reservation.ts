/** Decides about gangs that have a reservation, or are to get one. */
import { canonicalJson } from "../../../runtime/json.ts";
import type { Nomination } from "../../job/preemption.ts";
import type { DecideClass } from "../assign/assign-class.ts";
import { flavorsIn } from "../fit/flavors.ts";
import type { Fleet } from "../fit/fleet.ts";
import { partWith } from "../fit/part-of-gang.ts";
import { tryIn } from "../fit/requests.ts";
import type { PlanGang } from "../model/plan-gang.ts";
import type { PlannedAdmission } from "../model/plan-types.ts";
import type { PlannedPreemption } from "../model/preemption.ts";
import { DEFAULT_POLICY } from "../model/queue-policy.ts";
import { plannedVictims } from "../preempt/growth.ts";
import type { Round } from "../preempt/round.ts";
import { amountsOf } from "../queues/ask-shape.ts";
import { ownClass } from "../queues/gang-class.ts";
import { compareGangs } from "../queues/order.ts";
import { reserve as setReserved } from "../queues/queue-state.ts";
import type { CapacityTry, GangClass, GangQueue, GangRecord, Request, ReservedCapacity } from "../queues/records.ts";
import type { RunningJobs } from "../queues/running-jobs.ts";
import { admissionOf, type FindReservations, type Forecast } from "./forecast.ts";
import { ReservationPlaces } from "./reservation-places.ts";

/** The parts of a round that decide about nominees and reservations. */
export type NomineeParts = {
  readonly round: Round;
  readonly decide: DecideClass;
  readonly running: RunningJobs;
  readonly reservations: FindReservations;
};

/**
 * `waits`: its tokens and its capacity are kept for the rest of the round. `contested`: also, until other gangs have
 * had their turns. `withdrawn`: it is a nominee no more. A preemption replaces its nomination.
 */
export type NomineeAnswer = PlannedAdmission | PlannedPreemption | "waits" | "contested" | "withdrawn";

/**
 * No gang of a strict queue overtakes a nominee that waits on, or whose nomination ends: that one is in no gang class
 * until the next round.
 */
export function holdBack(fleet: Fleet, gang: GangRecord): void {
  const { gangQueue } = gang;
  if (!fleet.isStrict(gangQueue.name)) return;
  if (gangQueue.reserved === null || compareGangs(gang, gangQueue.reserved) < 0) setReserved(gangQueue, gang);
}

/**
 * Decides about a gang with a reservation. It is admitted where it fits now, and has others preempted once it may.
 * Else it waits on, and what it waits for is kept for it. If its cluster cannot give it any more what it names, the
 * reservation moves to another one, also in another pool if that has a place beside those that come later.
 */
export function decideReservation(of: NomineeParts, gang: GangRecord, later: ReadonlySet<GangRecord>): NomineeAnswer {
  const { round, decide, reservations } = of;
  const { fleet, requeue, reserved } = round;
  const before = keptBefore(of, gang);
  if (before !== null) {
    reservations.holdAgain(before);
    return "waits";
  }
  requeue.lastRound.kept.delete(gang);
  const gangClass = ownClass(gang);
  if (gang.gangQueue.stop !== null || isFull(of, gang) || reserveAfterMs(fleet, gang.gangQueue) === 0)
    return "withdrawn";
  const named = namedTry(round, gangClass, gang.facts);
  const here = named === null ? null : decide.takeIn(gangClass, gang, named);
  const search = requeue.searchQueue.includeReservations ? "victims" : "none";
  const admitted = here ?? decide.admitAny(gangClass, gang, search);
  if (admitted !== null) return admitted;
  const found = forecastOf(of, gangClass, { gang, named, later });
  if (found === null) return "withdrawn";
  const planned = reserve(of, found, gang.facts.nomination ?? null);
  const kept = reserved.kept.at(-1);
  // Which gangs end first changes with time where some may be taken back at any time.
  if (planned === null && kept !== undefined && reservations.lasts()) requeue.lastRound.kept.set(gang, kept);
  return planned ?? "waits";
}

/** What the last round has kept for a gang. Null: more has changed since than that other gangs wait. */
function keptBefore({ round: { requeue } }: NomineeParts, gang: GangRecord): ReservedCapacity | null {
  return requeue.searchQueue.includeReservations ? null : (requeue.lastRound.kept.get(gang) ?? null);
}

function forecastOf(
  of: NomineeParts,
  gangClass: GangClass,
  {
    gang,
    named,
    later,
  }: { readonly gang: GangRecord; readonly named: CapacityTry | null; readonly later: ReadonlySet<GangRecord> },
): Forecast | null {
  const { decide, reservations } = of;
  const { nomination } = gang.facts;
  if (named !== null && nomination !== undefined) {
    const { request } = named;
    const asking = { gangClass, gang, request, requested: decide.requestsOf(request) };
    const kept = reservations.keep(asking, named, nomination);
    if (kept !== null) return kept;
  }
  const places = placesLeft(of, later);
  return reservations.find(gangClass, gang, ({ requested }) => places.hasAll(requested));
}

/** The places that pools have left beside the reservations that were decided about, and later ones. */
function placesLeft({ round }: NomineeParts, later: ReadonlySet<GangRecord>): ReservationPlaces {
  const { resources } = round.fleet;
  const places = new ReservationPlaces(round.reservationsPerPool, round.reserved.kept);
  for (const { facts, shape } of later) {
    const { nomination } = facts;
    const sized = nomination?.reservation === undefined ? null : partWith(shape, nomination.members);
    if (sized !== null) places.take(amountsOf(sized, nomination?.flavors ?? {}, resources));
  }
  return places;
}

/**
 * Keeps what a forecast names for its gang for the rest of the round. Returns what must be recorded about it. Null: the
 * record of the reservation says all of it.
 */
export function reserve(
  { round, decide, reservations }: Omit<NomineeParts, "running">,
  found: Forecast,
  nomination: Nomination | null,
): PlannedPreemption | null {
  const { asking, tried, awaits, keepsQuota } = found;
  const { gang: queued } = asking;
  const { kept } = round.reserved;
  // Gangs that agree to be taken back would else take back each other for ever. Where an earlier reservation stands may
  // change with who is gone, so that a later one of the same pool would take back in vain.
  const isFirst = !kept.some(({ requested }) => [...asking.requested.keys()].some((pool) => requested.has(pool)));
  const mayTake =
    isFirst && queued.facts.backfill !== true && awaits.every((gang) => reservations.mayBeTakenBack(gang));
  const taken = mayTake ? awaits : [];
  // Gangs that are chosen count as gone. Holding them after that would count them twice.
  reservations.hold(found);
  round.victims.choose(taken);
  holdBack(round.fleet, queued);
  const { sinceMs = null } = nomination?.reservation ?? {};
  const isKnown = nomination?.generation === queued.facts.generation && isRecorded(nomination, found);
  if (isKnown && taken.length === 0) return null;
  const named = awaits.filter((gang) => !taken.includes(gang)).map(admissionOf);
  return {
    planned: decide.plannedIn(queued, asking.request, tried),
    victims: plannedVictims(taken.map((gang) => ({ gang, reason: "Reservation" }))),
    reservation: { sinceMs, keepsQuota, awaits: named },
  };
}

/** True if a nomination names all that a forecast does. */
function isRecorded({ cluster, flavors, victims, reservation }: Nomination, found: Forecast): boolean {
  const { asking, tried, awaits, keepsQuota } = found;
  if (cluster !== tried.cluster.name || reservation?.keepsQuota !== keepsQuota) return false;
  if (canonicalJson(flavors) !== canonicalJson(asking.request.choice)) return false;
  const known = new Map(victims.map(({ jobUid, admission }) => [jobUid, admission]));
  return awaits.every(({ uid, admission }) => known.get(uid) === admission.number);
}

/** How long a gang waits before it gets a reservation. 0: it gets none. */
export function reserveAfterMs({ quota }: Pick<Fleet, "quota">, { name }: Pick<GangQueue, "name">): number {
  return (quota.queues.get(name)?.policy ?? DEFAULT_POLICY).reserveAfterMs;
}

/** The request in the cluster that a nomination names. Null: it is void. */
export function namedTry(round: Round, gangClass: GangClass, gang: PlanGang): CapacityTry | null {
  const { fleet } = round;
  const { nomination } = gang;
  if (nomination === undefined || nomination.generation !== gang.generation) return null;
  const { gangQueue, shape } = gangClass;
  if (gangQueue.stop !== null || !fleet.quota.queues.has(gangQueue.name)) return null;
  if (Object.values(nomination.flavors).some((pool) => fleet.quota.frozen.has(pool))) return null;
  const sized = partWith(shape, nomination.members);
  if (sized === null) return null;
  const flavors = flavorsIn(gangClass, nomination.flavors, fleet.resources);
  const request: Request = round.requestOf(gangClass, sized, flavors);
  const found = fleet.clustersFor(shape.ask).find(({ cluster }) => cluster.name === nomination.cluster);
  if (found === undefined || found.block !== null || gangClass.excludedClusters.includes(nomination.cluster))
    return null;
  const tried = tryIn(request, found.cluster, found.facts);
  return tried.lacks === null ? tried : null;
}

export function isFull({ running }: NomineeParts, { gangQueue, facts }: GangRecord): boolean {
  return running.fullAt(gangQueue.name) !== null || running.fullTenant(facts) !== null;
}
