import { canonicalJson } from "../../../runtime/json.ts";
import type { Nomination } from "../../job/preemption.ts";
import type { PlanGang } from "../plan-gang.ts";
import type { PlannedAdmission } from "../plan-types.ts";
import type { PlannedPreemption } from "../preemption.ts";
import { isLeft } from "../preemption.ts";
import { DEFAULT_POLICY } from "../queue-policy.ts";
import type { RunningJobs } from "../running-jobs.ts";
import { amountsByPool, unitsOf } from "./ask-shape.ts";
import type { ClusterState } from "./cluster-state.ts";
import type { DecideLane } from "./decide-lane.ts";
import { compareEntries } from "./entry-order.ts";
import { admissionOf, type FindReservations, type Forecast } from "./find-reservations.ts";
import type { FindVictims } from "./find-victims.ts";
import type { Entry, Lane, Line } from "./gang-lines.ts";
import { plannedVictims } from "./growth.ts";
import { chargeHolds } from "./kept-room.ts";
import { compareAged } from "./line-ageing.ts";
import { ownLane } from "./new-lane.ts";
import { partWith } from "./part-of-gang.ts";
import { type Request, type RoomTry, tryIn } from "./requests.ts";
import { ReservationPlaces } from "./reservation-places.ts";
import type { Parts } from "./state-parts.ts";

type Of = {
  readonly parts: Parts;
  readonly decide: DecideLane;
  readonly victims: FindVictims;
  readonly running: RunningJobs;
  readonly reservations: FindReservations;
  readonly nowMs: number;
  /** So many reservations a pool has at most. */
  readonly perPool: number;
};

/**
 * `waits`: its tokens and its room are kept for the rest of the round. `withdrawn`: it is a nominee no more. A
 * preemption replaces its nomination.
 */
type NomineeAnswer = PlannedAdmission | PlannedPreemption | "waits" | "withdrawn";

/**
 * Decides about all nominees, in their order: first those for which others are preempted, then those with reservations.
 * None takes what another one holds.
 */
export function decideNominees(of: Of, checkStopped: () => void) {
  const nominees = [...of.parts.lines.nominees].sort(compareNominees);
  for (const entry of nominees) chargeHolds(of.parts, entry, 1);
  const { turns } = of.parts;
  const later = new Set(nominees);
  const answers = nominees.map((entry) => {
    checkStopped();
    chargeHolds(of.parts, entry, -1);
    later.delete(entry);
    const answer = answerTo(of, entry, later);
    if (answer === "withdrawn") chargeHolds(of.parts, entry, 1);
    if (typeof answer === "string" || "victims" in answer) holdBack(of.parts, entry);
    // The next ones may take what it has kept until now.
    if (answer !== "waits") turns.includeReservations = true;
    return { entry, answer };
  });
  if (answers.every(({ answer }) => answer === "waits")) turns.includeReservations = false;
  return answers;
}

function answerTo(of: Of, entry: Entry, later: ReadonlySet<Entry>): NomineeAnswer {
  if (isPassing(of, entry)) return "withdrawn";
  const isReservation = entry.gang.nomination?.reservation !== undefined;
  const answer = isReservation ? decideReservation(of, entry, later) : decideNominee(of, entry);
  // A reservation may start in a far future.
  const runsSoon = !isReservation || typeof answer !== "string";
  if (answer !== "withdrawn" && runsSoon) of.running.add(entry.gang);
  return answer;
}

/**
 * True for a nominee of a strict queue before which another gang waits: no gang passes that one. Its victims wait
 * behind it.
 */
function isPassing({ parts, decide, running, nowMs }: Of, entry: Entry): boolean {
  const { line, gang } = entry;
  if (!parts.isStrict(line.name)) return false;
  const victims = new Set(gang.nomination?.victims.map(({ jobUid }) => jobUid));
  return [...line.lanes.values()].some((lane) => {
    const first = lane.entries.find((one) => !victims.has(one.gang.uid));
    if (first === undefined || compareAged(first, entry, nowMs) >= 0) return false;
    return running.fullTenant(lane) === null && !decide.waitsForItself(lane);
  });
}

/**
 * No gang of a strict queue passes a nominee that waits on, or whose nomination ends: that one is in no lane until the
 * next round.
 */
function holdBack(parts: Parts, entry: Entry): void {
  const { line } = entry;
  if (!parts.isStrict(line.name)) return;
  if (line.reserved === null || compareEntries(entry, line.reserved) < 0) line.reserved = entry;
}

function compareNominees(a: Entry, b: Entry): number {
  // What others take back from gangs that agree to it is not for those.
  const late = ({ gang }: Entry) => {
    if (gang.nomination?.reservation === undefined) return 0;
    return gang.backfill === true ? 2 : 1;
  };
  return late(a) - late(b) || compareEntries(a, b);
}

/**
 * Decides about a gang for which others give way, before all other gangs: what they leave is for this one. It is
 * admitted as it was nominated, else with these flavors as it fits now. Else it waits while victims or their pods are
 * left. A nomination ends if the gang has changed since, or if its cluster, its queue or the quotas cannot give it what
 * it names.
 */
function decideNominee({ parts, decide, victims, running }: Of, entry: Entry): NomineeAnswer {
  const lane = ownLane(entry);
  const named = namedRoom(parts, lane, entry.gang);
  if (named === null) return "withdrawn";
  const isFull = running.fullAt(entry.line.name) !== null || running.fullTenant(entry.gang) !== null;
  const admitted = isFull ? null : (decide.takeIn(lane, entry, named) ?? decide.takeAny(lane, entry, named));
  if (admitted !== null) return admitted;
  if (!isFull && !hasVictims(parts, entry.gang, named.cluster)) return "withdrawn";
  const wants = decide.wantsOf(named.request);
  victims.charge(entry, wants);
  victims.occupy(named);
  return "waits";
}

/**
 * Decides about a gang with a reservation. It is admitted where it fits now, and has others preempted once it may.
 * Else it waits on, and what it waits for is kept for it. If its cluster cannot give it any more what it names, the
 * reservation moves to another one, also in another pool if that has a place beside those that come later.
 */
function decideReservation(of: Of, entry: Entry, later: ReadonlySet<Entry>): NomineeAnswer {
  const { parts, decide, victims, running, reservations } = of;
  if (keepsAgain(of, entry)) return "waits";
  const lane = ownLane(entry);
  const isFull = running.fullAt(entry.line.name) !== null || running.fullTenant(entry.gang) !== null;
  if (entry.line.stop !== null || isFull || reserveAfterMs(parts, entry.line) === 0) return "withdrawn";
  const named = namedRoom(parts, lane, entry.gang);
  const here = named === null ? null : decide.takeIn(lane, entry, named);
  victims.isPaused = !parts.turns.includeReservations;
  const boards = here ?? decide.boardAny(lane, entry);
  victims.isPaused = false;
  if (boards !== null) return boards;
  const found = forecastOf(of, lane, { entry, named, later });
  if (found === null) return "withdrawn";
  const planned = reserve(of, found, entry.gang.nomination ?? null);
  const kept = parts.kept.at(-1);
  // Which gangs end first changes with time where some may be taken back at any time.
  if (planned === null && kept !== undefined && reservations.lasts()) parts.keptBefore.set(entry, kept);
  return planned ?? "waits";
}

/** Keeps for a gang what the last round has kept, if nothing has changed since but that other gangs wait. */
function keepsAgain({ parts, reservations }: Of, entry: Entry): boolean {
  const before = parts.turns.includeReservations ? undefined : parts.keptBefore.get(entry);
  if (before === undefined) parts.keptBefore.delete(entry);
  else reservations.holdAgain(before);
  return before !== undefined;
}

function forecastOf(
  of: Of,
  lane: Lane,
  {
    entry,
    named,
    later,
  }: { readonly entry: Entry; readonly named: RoomTry | null; readonly later: ReadonlySet<Entry> },
): Forecast | null {
  const { decide, reservations } = of;
  const { nomination } = entry.gang;
  if (named !== null && nomination !== undefined) {
    const { request } = named;
    const asking = { lane, entry, request, wants: decide.wantsOf(request) };
    const kept = reservations.keep(asking, named, nomination);
    if (kept !== null) return kept;
  }
  const places = placesBeside(of, later);
  return reservations.find(lane, entry, ({ wants }) => places.hasAll(wants));
}

/** The places that pools have left beside the reservations that were decided about, and later ones. */
function placesBeside({ parts, perPool }: Of, later: ReadonlySet<Entry>): ReservationPlaces {
  const places = new ReservationPlaces(perPool, parts.kept);
  for (const { gang, shape } of later) {
    const { nomination } = gang;
    const sized = nomination?.reservation === undefined ? null : partWith(shape, nomination.members);
    if (sized !== null) places.take(amountsByPool(unitsOf(sized, parts.resources), nomination?.flavors ?? {}));
  }
  return places;
}

/**
 * Keeps what a forecast names for its gang for the rest of the round. Returns what must be recorded about it. Null: the
 * record of the reservation says all of it.
 */
export function reserve(
  { parts, decide, victims, reservations }: Omit<Of, "running" | "nowMs" | "perPool">,
  found: Forecast,
  nomination: Nomination | null,
): PlannedPreemption | null {
  const { asking, room, awaits, keepsQuota } = found;
  const { entry } = asking;
  // Gangs that agree to be taken back would else take back each other for ever. Where an earlier reservation stands may
  // change with who is gone, so that a later one of the same pool would take back in vain.
  const isFirst = !parts.kept.some(({ wants }) => [...asking.wants.keys()].some((pool) => wants.has(pool)));
  const mayTake = isFirst && entry.gang.backfill !== true && awaits.every((gang) => reservations.mayBeTakenBack(gang));
  const taken = mayTake ? awaits : [];
  // What is chosen counts as gone already: held after that, it would be counted as gone twice.
  reservations.hold(found);
  victims.choose(taken);
  holdBack(parts, entry);
  const { sinceMs = null } = nomination?.reservation ?? {};
  const isKnown = nomination?.generation === entry.gang.generation && isRecorded(nomination, found);
  if (isKnown && taken.length === 0) return null;
  const named = awaits.filter((gang) => !taken.includes(gang)).map(admissionOf);
  return {
    planned: decide.plannedIn(entry, asking.request, room),
    victims: plannedVictims(taken.map((gang) => ({ gang, reason: "Reservation" }))),
    reservation: { sinceMs, keepsQuota, awaits: named },
  };
}

/** True if a nomination names all that a forecast does. */
function isRecorded({ cluster, flavors, victims, reservation }: Nomination, found: Forecast): boolean {
  const { asking, room, awaits, keepsQuota } = found;
  if (cluster !== room.cluster.name || reservation?.keepsQuota !== keepsQuota) return false;
  if (canonicalJson(flavors) !== canonicalJson(asking.request.choice)) return false;
  const known = new Map(victims.map(({ jobUid, admission }) => [jobUid, admission]));
  return awaits.every(({ uid, admission }) => known.get(uid) === admission.number);
}

/** How long a gang waits before it gets a reservation. 0: it gets none. */
export function reserveAfterMs({ quota }: Pick<Parts, "quota">, { name }: Pick<Line, "name">): number {
  return (quota.queues.get(name)?.policy ?? DEFAULT_POLICY).reserveAfterMs;
}

/** The request in the cluster that a nomination names. Null: it is void. */
export function namedRoom(parts: Parts, lane: Lane, gang: PlanGang): RoomTry | null {
  const { nomination } = gang;
  if (nomination === undefined || nomination.generation !== gang.generation) return null;
  const { line, shape } = lane;
  if (line.stop !== null || !parts.quota.queues.has(line.name)) return null;
  if (Object.values(nomination.flavors).some((pool) => parts.quota.frozen.has(pool))) return null;
  const sized = partWith(shape, nomination.members);
  if (sized === null) return null;
  const resources = Object.keys(unitsOf(shape.all, parts.resources));
  const request: Request = parts.requestOf(
    lane,
    sized,
    resources.map((resource) => nomination.flavors[resource] ?? ""),
  );
  const found = parts.clustersFor(shape.ask).find(({ cluster }) => cluster.name === nomination.cluster);
  if (found === undefined || found.block !== null || lane.barred.includes(nomination.cluster)) return null;
  const room = tryIn(request, found.cluster, found.facts);
  return room.lacks === null ? room : null;
}

/**
 * True while a victim runs, or holds tokens or pods. What nodes show may be older than its record: they still count its
 * pods as long as they show them.
 */
function hasVictims({ lines }: Pick<Parts, "lines">, { nomination }: PlanGang, cluster: ClusterState): boolean {
  return (nomination?.victims ?? []).some((victim) => {
    const gang = lines.entries.get(victim.jobUid)?.gang;
    return (gang !== undefined && isLeft(gang, victim)) || cluster.shows(victim, victim.keeps);
  });
}
