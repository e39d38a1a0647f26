import type { Nomination } from "../../job/preemption.ts";
import type { ClusterState } from "../capacity/cluster-state.ts";
import type { Fleet } from "../fit/fleet.ts";
import { chargeHolds } from "../fit/reserved.ts";
import type { PlanGang, PlannedFrom } from "../model/plan-gang.ts";
import { isLeft } from "../model/preemption.ts";
import { ownClass } from "../queues/gang-class.ts";
import { compareAged, compareGangs } from "../queues/order.ts";
import type { CapacityTry, GangClass, GangRecord } from "../queues/records.ts";
import {
  decideReservation,
  holdBack,
  isFull,
  type NomineeAnswer,
  type NomineeParts,
  namedTry,
} from "../reservations/decide-reservation.ts";

/**
 * Decides about all nominees, in their order: first those for which others are preempted, then those with reservations.
 * None takes what another one holds. Decides nothing yet about a nominee before which others of its queue stand.
 */
export function decideNominees(of: NomineeParts, checkStopped: () => void) {
  const { fleet } = of.round;
  const nominees = [...fleet.queues.nominees].sort(compareNominees);
  for (const gang of nominees) chargeHolds(fleet, gang, 1);
  const { searchQueue } = of.round.requeue;
  const later = new Set(nominees);
  const answers = nominees.map((gang) => {
    checkStopped();
    chargeHolds(fleet, gang, -1);
    later.delete(gang);
    const answer = answerTo(of, gang, later);
    if (answer === "withdrawn") chargeHolds(fleet, gang, 1);
    if (typeof answer === "string" || "victims" in answer) holdBack(fleet, gang);
    // The next ones may take what it has kept until now.
    if (!isKept(answer)) searchQueue.includeReservations = true;
    return { gang, answer };
  });
  if (answers.every(({ answer }) => isKept(answer))) searchQueue.includeReservations = false;
  return answers;
}

/** True while what a nominee waits for is kept for it as before. */
export function isKept(answer: NomineeAnswer): boolean {
  return answer === "waits" || answer === "contested";
}

/**
 * Decides about the nominees whose places no other gang of their queues has taken in this round. `isCut`: the round has
 * not looked at all gangs, so that they wait on.
 */
export function decideContested(of: NomineeParts, { isCut }: { readonly isCut: boolean }) {
  const { fleet, reserved } = of.round;
  const left = reserved.contested;
  for (const kept of left) reserved.exclude(kept);
  for (const { gang } of left) chargeHolds(fleet, gang, 1);
  const answers = left.map(({ gang }) => {
    chargeHolds(fleet, gang, -1);
    const answer = answerToContested(of, gang, isCut);
    if (answer === "withdrawn") chargeHolds(fleet, gang, 1);
    else of.running.add(gang.facts);
    return { gang, answer };
  });
  // Only now: what was refused while it was kept fits without it.
  for (const kept of left) reserved.endContest(kept);
  return answers;
}

function answerToContested(of: NomineeParts, gang: GangRecord, isCut: boolean): NomineeAnswer {
  const before = classesBefore(of, gang);
  if (isCut && before.some(({ active }) => active)) {
    const named = namedTry(of.round, ownClass(gang), gang.facts);
    return named === null ? "withdrawn" : waitOn(of, gang, named);
  }
  // Another gang was given the place among the running jobs.
  if (isFull(of, gang)) return "withdrawn";
  const isOvertaking = of.round.fleet.isStrict(gang.gangQueue.name) && before.length > 0;
  return isOvertaking ? "withdrawn" : decideNominee(of, gang);
}

function answerTo(of: NomineeParts, gang: GangRecord, later: ReadonlySet<GangRecord>): NomineeAnswer {
  const isReservation = gang.facts.nomination?.reservation !== undefined;
  if (isReservation && of.round.fleet.isStrict(gang.gangQueue.name) && classesBefore(of, gang).length > 0)
    return "withdrawn";
  if (!isReservation && !isFull(of, gang) && classesBefore(of, gang).length > 0) return contest(of, gang);
  const answer = isReservation ? decideReservation(of, gang, later) : decideNominee(of, gang);
  // A reservation may start in a far future.
  const runsSoon = !isReservation || typeof answer !== "string";
  if (answer !== "withdrawn" && runsSoon) of.running.add(gang.facts);
  return answer;
}

/**
 * The gang classes of a nominee's queue with gangs that stand before it. No gang of a strict queue overtakes those, and
 * those of another queue may take the nominee's place. Its victims wait behind it.
 */
function classesBefore({ round, decide, running }: NomineeParts, gang: GangRecord): readonly GangClass[] {
  const { gangQueue, facts } = gang;
  const victims = new Set(facts.nomination?.victims.map(({ jobUid }) => jobUid));
  return [...gangQueue.classes.values()].filter((gangClass) => {
    const first = gangClass.gangs.find((one, at) => at >= gangClass.at && !victims.has(one.facts.uid));
    if (first === undefined || compareAged(first, gang, round.nowMs) >= 0) return false;
    return running.fullTenant(gangClass) === null && !decide.waitsForItself(gangClass);
  });
}

/** Keeps what a nominee waits for while others of its queue may take its place. */
function contest({ round, decide }: NomineeParts, gang: GangRecord): "contested" | "withdrawn" {
  const named = namedTry(round, ownClass(gang), gang.facts);
  if (named === null) return "withdrawn";
  const requested = decide.requestsOf(named.request);
  for (const [pool, amount] of requested) round.fleet.quota.charge(gang.account, pool, amount);
  const placed = round.victims.occupy(named);
  round.reserved.contest({
    ...{ gang, requested, cluster: named.cluster, placed, inherited: new Map(), rise: null },
    ...{ startMs: Number.POSITIVE_INFINITY, isFar: false, excluded: false },
  });
  return "contested";
}

function compareNominees(a: GangRecord, b: GangRecord): number {
  // Gangs that agree to be taken back come last, and get nothing that others take back from them.
  const late = ({ facts }: GangRecord) => {
    if (facts.nomination?.reservation === undefined) return 0;
    return facts.backfill === true ? 2 : 1;
  };
  return late(a) - late(b) || compareGangs(a, b);
}

/**
 * Decides about a gang for which others are preempted, before all other gangs: what they leave is for this one. It is
 * admitted as it was nominated, or waits if it fits there once all are gone that leave, also if another cluster has
 * room meanwhile: else its victims would have ended in vain. If its cluster has lost room, it is admitted wherever
 * these flavors are free now, or waits while victims or their pods are left. A nomination ends if the gang has changed
 * since, or if its cluster, its queue or the quotas cannot give it what it names.
 */
function decideNominee(of: NomineeParts, gang: GangRecord): NomineeAnswer {
  const { round, decide } = of;
  const gangClass = ownClass(gang);
  const named = namedTry(round, gangClass, gang.facts);
  if (named === null) return "withdrawn";
  if (isFull(of, gang)) return waitOn(of, gang, named);
  const here = decide.takeIn(gangClass, gang, named);
  if (here !== null) return here;
  const asking = { gangClass, requested: decide.requestsOf(named.request) };
  if (round.victims.stillFits(asking, { tried: named, victims: [] })) return waitOn(of, gang, named);
  const elsewhere = decide.takeAny(gangClass, gang, named);
  if (elsewhere !== null) return elsewhere;
  return victimsLeft(round.fleet, gang.facts, named.cluster).length === 0 ? "withdrawn" : waitOn(of, gang, named);
}

/** Keeps what a nominee waits for until the end of the round. */
function waitOn({ round, decide }: NomineeParts, gang: GangRecord, named: CapacityTry): "waits" {
  round.victims.charge(gang, decide.requestsOf(named.request));
  round.victims.occupy(named);
  return "waits";
}

/**
 * The victims of a nominee that run, or hold tokens or pods. What nodes show may be older than a record: they still
 * count the pods of a victim as long as they show them. Nobody waits for pods in a cluster that does not answer.
 */
export function victimsLeft(
  { queues, clusters }: Pick<Fleet, "queues" | "clusters">,
  { nomination }: PlanGang,
  cluster: ClusterState,
): Nomination["victims"] {
  const isSilent = ({ cluster: name, tokensReleasedMs }: PlannedFrom) =>
    tokensReleasedMs !== null && clusters.get(name ?? "")?.facts?.reachable === false;
  return (nomination?.victims ?? []).filter((victim) => {
    const gang = queues.gangs.get(victim.jobUid)?.facts;
    const admission = gang?.admissions.find(({ number }) => number === victim.admission);
    const isAwaited = gang !== undefined && isLeft(gang, victim) && !(admission !== undefined && isSilent(admission));
    return isAwaited || cluster.shows(victim, victim.keeps);
  });
}
