/** The transitions of a gang class: how it comes to be looked at in the next round, and how it goes on waiting. */
import type { QuotaBlock } from "../usage/quota-state.ts";
import { addActive, forgetHead, forgetWaitedLong } from "./queue-state.ts";
import {
  type ClassOption,
  type GangClass,
  type GangQueue,
  type GangRecord,
  type LevelList,
  type Request,
  written,
} from "./records.ts";
import type { ClassRefusal, ReservedFor } from "./refusals.ts";

/**
 * Why a gang class is looked at again. `mayFit`: what it waits for may have come. `search`: its turn has come to look
 * for gangs that it may preempt. `changed`: it is decided about as if no round had looked at it.
 */
export type RequeueReason = "mayFit" | "search" | "changed";

/** Lets the next round, or the one that runs, look at the first gang of a class. */
export function requeue(gangClass: GangClass, why: RequeueReason): void {
  const own = written(gangClass);
  if (why !== "mayFit") own.maySearch = true;
  if (why === "changed") {
    own.refusal = null;
    forgetHead(gangClass.gangQueue);
    if (gangClass.gangs.length === 0) return;
  }
  own.active = true;
  addActive(gangClass);
}

/** Lets no round look at a gang class until it is requeued. */
export function deactivate(gangClass: GangClass): void {
  written(gangClass).active = false;
}

/** The gang classes at which rounds look although their lists do not say so, and those at which every round looks. */
export type ReevaluatedClasses = { readonly reevaluated: Set<GangClass>; readonly alwaysReevaluated: Set<GangClass> };

/**
 * Records why the first gang of a class was refused, and why rounds look at the gang class although its lists do not
 * say so.
 */
export function refuse(
  gangClass: GangClass,
  by: { readonly refusal: ClassRefusal | null; readonly reevaluated: GangClass["reevaluated"] },
  classes: ReevaluatedClasses,
): void {
  const own = written(gangClass);
  own.active = false;
  if ((gangClass.refusal === null) !== (by.refusal === null)) forgetWaitedLong(gangClass.gangQueue);
  own.refusal = by.refusal;
  setReevaluated(gangClass, by.reevaluated, classes);
}

/** Records that a gang class would be admitted without a reservation, and lets rounds look at it after any change. */
export function markReservedFor(
  gangClass: GangClass,
  refusal: ClassRefusal,
  reservedFor: ReservedFor,
  classes: ReevaluatedClasses,
): void {
  written(gangClass).refusal = { ...refusal, keptFor: reservedFor };
  if (gangClass.reevaluated === null) setReevaluated(gangClass, "victims", classes);
}

/** Records why rounds look at a gang class although its lists do not say that they should. Null: they do not. */
function setReevaluated(
  gangClass: GangClass,
  reevaluated: GangClass["reevaluated"],
  classes: ReevaluatedClasses,
): void {
  written(gangClass.gangQueue).reevaluated += Number(reevaluated !== null) - Number(gangClass.reevaluated !== null);
  written(gangClass).reevaluated = reevaluated;
  classes.reevaluated.delete(gangClass);
  classes.alwaysReevaluated.delete(gangClass);
  if (reevaluated !== null) classes.reevaluated.add(gangClass);
  if (reevaluated === "always" || reevaluated === "tokens") classes.alwaysReevaluated.add(gangClass);
}

/** Ends the waits of a gang class that has no gangs any more. */
export function endClass(gangClass: GangClass, classes: ReevaluatedClasses): void {
  deactivate(gangClass);
  setReevaluated(gangClass, null, classes);
  leaveLists(gangClass);
}

/** Goes on to the next gang of a class, because the round has given its first one something. */
export function advance(gangClass: GangClass): void {
  written(gangClass).at += 1;
  forgetHead(gangClass.gangQueue);
}

/** Goes back to the first gang of a class: those that a round has admitted wait until that is recorded. */
export function goBack(gangClass: GangClass): void {
  written(gangClass).at = 0;
  forgetHead(gangClass.gangQueue);
}

/** Lets a gang class look for victims when a round looks at it, or not. */
export function setSearch(gangClass: GangClass, maySearch: boolean): void {
  written(gangClass).maySearch = maySearch;
}

/** Records how often all gang classes had been requested to look for victims when this one did. */
export function noteSearched(gangClass: GangClass, requested: number): void {
  written(gangClass).searchedUpTo = requested;
}

/** Records the key of the reason that was last reported for a gang or its class. */
export function noteReported(of: GangClass | GangRecord, key: number): void {
  written(of).reported = key;
}

/** Records the quotas that kept a gang class refused. What keeps each of its flavors shut is not known any more. */
export function noteClosedBy(gangClass: GangClass, closedBy: readonly QuotaBlock[]): void {
  const own = written(gangClass);
  own.options = undefined;
  own.closedBy = closedBy;
}

/** Records the alternatives for the one flavored resource of a gang class. Null: it has not just one. */
export function noteOptions(gangClass: GangClass, options: readonly ClassOption[] | null): void {
  written(gangClass).options = options;
}

/** Lets a gang class wait for capacity for a request. */
export function waitForCapacity(gangClass: GangClass, request: Request): void {
  if (request.waiting.has(gangClass)) return;
  request.waiting.add(gangClass);
  written(gangClass).requests.push(request);
}

/** Lets a gang class wait for the capacity of a level. */
export function waitForQuota(gangClass: GangClass, list: LevelList): void {
  if (list.waiting.has(gangClass)) return;
  list.waiting.add(gangClass);
  written(gangClass).waitsIn.push(list);
}

/** Ends a class's wait for the capacity of a level. */
export function stopWaiting(gangClass: GangClass, list: LevelList): void {
  const { waitsIn } = written(gangClass);
  if (list.waiting.delete(gangClass)) waitsIn.splice(waitsIn.indexOf(list), 1);
}

/** Takes a gang class out of the lists of those that wait. */
export function leaveLists(gangClass: GangClass): void {
  const { waitsIn, requests } = written(gangClass);
  for (const { waiting } of waitsIn) waiting.delete(gangClass);
  for (const request of requests) request.waiting.delete(gangClass);
  waitsIn.length = 0;
  requests.length = 0;
}

/** Lets the next round decide about all gang classes of a queue as if none had. */
export function requeueAll(gangQueue: GangQueue): void {
  written(gangQueue).skipped = false;
  for (const gangClass of gangQueue.classes.values()) requeue(gangClass, "changed");
}
