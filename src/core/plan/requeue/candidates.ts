/** Which gang classes and queues a round looks at, and which gang classes the next one looks at again. */

import { requeue } from "../queues/class-state.ts";
import type { GangQueues } from "../queues/gang-queues.ts";
import { addActive } from "../queues/queue-state.ts";
import type { ClassOption, GangClass, GangQueue } from "../queues/records.ts";
import type { ClusterBlocks } from "../queues/refusals.ts";
import type { Requeue } from "./requeue.ts";

/** True if something that a gang class waits for may have come. */
function mayHaveCome({ requests, waitsIn }: GangClass): boolean {
  for (const { isCandidate: has } of requests) if (has) return true;
  for (const { isCandidate: has } of waitsIn) if (has) return true;
  return false;
}

/** True if a gang class is active, or something may have come for it. */
export function isCandidate(gangClass: GangClass): boolean {
  return gangClass.active || mayHaveCome(gangClass);
}

/** False: no gang of a queue may be admitted or grow. None of a strict queue overtakes its head. */
export function mayHaveHead(
  { head, classes, active, growing, stretching }: GangQueue,
  of: { readonly isStrict: boolean; readonly isGathered: boolean },
): boolean {
  if (growing.length + stretching.length > 0) return true;
  if (of.isStrict) return head === null ? classes.size > 0 : isCandidate(head);
  return active.length > 0 || (!of.isGathered && classes.size > 0);
}

/** True if a gang class that each round looks at may stand before its queue's head, which has overtaken it. */
export function mayHaveOvertaken(
  { alwaysReevaluated }: Pick<GangQueues, "alwaysReevaluated">,
  { active }: GangQueue,
): boolean {
  return alwaysReevaluated.size > 0 && active.some(({ reevaluated }) => reevaluated === "always");
}

/** So small a part of the gangs is gathered. Of more, most would find that others have taken what has come. */
const PART_GATHERED = 1 / 4;

/** True if so few gangs wait for what may have come that their gang classes are worth being gathered. */
export function areFewCandidates({ candidates, quotaWaits }: Requeue, { gangs }: Pick<GangQueues, "gangs">): boolean {
  let waiting = 0;
  for (const lists of [candidates, quotaWaits.candidates]) for (const list of lists) waiting += list.waiting.size;
  return waiting <= gangs.size * PART_GATHERED;
}

/** Puts the gang classes for which something may have come among the active ones of their queues. */
export function gatherCandidates({ candidates, quotaWaits }: Requeue): void {
  for (const lists of [candidates, quotaWaits.candidates])
    for (const gangClass of lists.classes()) addActive(gangClass);
}

/**
 * Drops the candidates of a round. Gang classes that were not looked at stay active: if a bound ended the round, any
 * may be such a gang class, else those of strict queues that stand behind the ones which were `tried`.
 */
export function dropCandidates(
  { candidates, quotaWaits }: Requeue,
  of: {
    readonly isCut: boolean;
    readonly tried: ReadonlySet<GangClass>;
    readonly isStrict: (queue: string) => boolean;
  },
): void {
  const isLeft = (gangClass: GangClass) =>
    of.isCut || (of.isStrict(gangClass.gangQueue.name) && !of.tried.has(gangClass));
  for (const lists of [candidates, quotaWaits.candidates]) {
    for (const gangClass of lists.classes()) if (isLeft(gangClass)) requeue(gangClass, "mayFit");
    lists.clear();
  }
}

/** True if the nearest thing in the way of a refused gang is an older admission of its own: others may overtake it. */
export function waitsForItself({ refusal }: GangClass): boolean {
  return refusal !== null && !refusal.stoppedByQuota && onlyDrains(refusal.clusters);
}

/** True if each cluster that could take a gang still has objects of an older admission of it. */
export function onlyDrains({ all }: ClusterBlocks): boolean {
  const reasons = all.map(({ reason }) => reason);
  return reasons.includes("Draining") && !reasons.includes("NoCapacity") && !reasons.includes("DomainFull");
}

/** True if a gang class is woken once there may be capacity for an option for which it has the quota. */
export function isWokenByCapacity({ refusal }: GangClass, { waits, block }: ClassOption): boolean {
  return waits || (block !== null && !refusal?.stoppedByQuota);
}
