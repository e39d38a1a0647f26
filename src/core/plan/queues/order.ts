/** The order of gangs in a queue, and that of its gang classes, which lasts over rounds. */
import { compareText } from "../../../runtime/compare-text.ts";
import { firstWhere } from "../../../runtime/first-where.ts";
import type { PlanGang } from "../model/plan-gang.ts";
import { type AgeingInBands, effectivePriority, nextStepMs } from "./ageing.ts";
import { type GangClass, type GangQueue, type GangRecord, written } from "./records.ts";

/** Forgets the order of a queue's gang classes. */
export function forgetOrder(gangQueue: GangQueue): void {
  const own = written(gangQueue);
  own.order = null;
  own.waitedLong = null;
}

/**
 * Lets gangs come to a gang class or leave it, and moves the gang class to its new place. A gang class without gangs
 * has none.
 */
export function changeClass(gangClass: GangClass, change: () => void): void {
  const gangQueue = written(gangClass.gangQueue);
  const order = gangQueue.ageing === null ? gangQueue.order : null;
  const [before] = gangClass.gangs;
  const at = order === null || before === undefined ? null : classAt(order, before);
  change();
  gangQueue.order = order;
  gangQueue.waitedLong = null;
  const [after] = gangClass.gangs;
  if (order === null || after === before) return;
  if (at !== null) order.splice(at, 1);
  if (after !== undefined) order.splice(classAt(order, after), 0, gangClass);
}

/** The first place whose class's first gang does not come before this one. */
function classAt(order: readonly GangClass[], gang: GangRecord): number {
  return firstWhere(0, order.length, (at) => compareGangs(order[at]?.gangs[0] as GangRecord, gang) >= 0);
}

/** A gang's priority in the order of admission. Only gangs that wait age. */
export function rankOf(
  { facts, gangQueue: { ageing } }: Pick<GangRecord, "facts" | "gangQueue">,
  nowMs: number,
): number {
  return ageing === null || !facts.waits ? facts.priority : effectivePriority(facts, ageing, nowMs);
}

/** Compares the places of two gangs in the order of admission. */
export function compareAged(a: GangRecord, b: GangRecord, nowMs: number): number {
  return rankOf(b, nowMs) - rankOf(a, nowMs) || compareAges(a, b);
}

/** Forgets the heads and the orders of queues whose order may have changed by time alone since `noteSteps`. */
export function passSteps(queues: Iterable<GangQueue>, nowMs: number): void {
  for (const gangQueue of queues) {
    const { rankedMs } = gangQueue;
    if (rankedMs === null || (nowMs >= rankedMs.from && nowMs < rankedMs.until)) continue;
    written(gangQueue).head = null;
    forgetOrder(gangQueue);
  }
}

/**
 * Records until when the order of each queue stays as it is, and returns the first such time. The first gang of a class
 * goes before its others, so that the order of the first ones is enough. Infinite: no order changes by time alone.
 */
export function noteSteps(queues: Iterable<GangQueue>, nowMs: number): number {
  let least = Number.POSITIVE_INFINITY;
  for (const gangQueue of queues) {
    const { ageing } = gangQueue;
    const ranked = ageing === null ? null : { from: nowMs, until: nextStepIn(gangQueue, ageing, nowMs) };
    written(gangQueue).rankedMs = ranked;
    if (gangQueue.stop === null) least = Math.min(least, ranked?.until ?? least);
  }
  return least;
}

function nextStepIn({ classes }: GangQueue, ageing: AgeingInBands, nowMs: number): number {
  let least = Number.POSITIVE_INFINITY;
  for (const gangClass of classes.values()) {
    // The first gang, and the first one that the round has left.
    for (const gang of [gangClass.gangs[0], headOf(gangClass)]) {
      if (gang !== undefined) least = Math.min(least, nextStepMs(gang.facts, ageing, nowMs));
    }
  }
  return least;
}

type RankedGang = { readonly facts: Pick<PlanGang, "uid" | "priority" | "createTimeMs"> };

/** The order of gangs by their own priorities: the higher one first, then age, then uid. */
export function compareGangs(a: RankedGang, b: RankedGang): number {
  return b.facts.priority - a.facts.priority || compareAges(a, b);
}

/** A gang, and its priority in the order of admission: the effective one, or its own. */
export type Ranked = { readonly rank: number; readonly gang: RankedGang };

/** The order of admission: higher effective priority first, then age, then uid. */
export function compareRanked(a: Ranked, b: Ranked): number {
  return b.rank - a.rank || compareAges(a.gang, b.gang);
}

/** The order of two gangs of equal priority: the older one first, then uid. */
export function compareAges({ facts: a }: RankedGang, { facts: b }: RankedGang): number {
  return a.createTimeMs - b.createTimeMs || compareText(a.uid, b.uid);
}

/** Puts a gang at its place in a sorted list. */
export function insertGang<E extends RankedGang>(sorted: E[], gang: E): void {
  sorted.splice(placeOf(sorted, gang), 0, gang);
}

/** Takes a gang out of a sorted list, if it is there. */
export function removeGang<E extends RankedGang>(sorted: E[], gang: E): void {
  const at = placeOf(sorted, gang);
  if (sorted[at] === gang) sorted.splice(at, 1);
}

/** The first place whose gang does not come before this one. */
function placeOf(sorted: readonly RankedGang[], gang: RankedGang): number {
  return firstWhere(0, sorted.length, (at) => compareGangs(sorted[at] as RankedGang, gang) >= 0);
}

/** The first gang of a class that the round has not admitted. */
export function headOf(gangClass: GangClass): GangRecord | undefined {
  return gangClass.gangs[gangClass.at];
}

/** The gangs of a queue that wait, those that wait for themselves included. */
export function waitingIn(gangQueue: GangQueue): GangRecord[] {
  return [...[...gangQueue.classes.values()].flatMap(({ gangs }) => gangs), ...gangQueue.held];
}
