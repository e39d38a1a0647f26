/** Reads and resets the parts of lanes and queues on which the turns of a round depend. */
import type { GangLines, Lane, Line } from "./gang-lines.ts";
import type { LaneOption } from "./lane-options.ts";
import type { ClusterBlocks } from "./refused.ts";
import type { Parts } from "./state-parts.ts";

/** True if something that a lane waits for may have come. */
function isHopeful({ requests, waitsIn }: Lane): boolean {
  for (const { hopeful } of requests) if (hopeful) return true;
  for (const { hopeful } of waitsIn) if (hopeful) return true;
  return false;
}

/** True if a lane is awake, or something may have come for it. */
export function isWakeful(lane: Lane): boolean {
  return lane.awake || isHopeful(lane);
}

/** False: no gang of a queue may be admitted or grow. None of a strict queue passes its head. */
export function mayTakeTurn(
  { head, lanes, awake, growing, stretching }: Line,
  of: { readonly isStrict: boolean; readonly isGathered: boolean },
): boolean {
  if (growing.length + stretching.length > 0) return true;
  if (of.isStrict) return head === null ? lanes.size > 0 : isWakeful(head);
  return awake.length > 0 || (!of.isGathered && lanes.size > 0);
}

/** True if a lane that each round looks at may stand before its queue's head, which has passed it. */
export function mayHavePassed({ sleepless }: Pick<GangLines, "sleepless">, { awake }: Line): boolean {
  return sleepless.size > 0 && awake.some(({ restless }) => restless === "always");
}

/** Puts a lane among the awake ones of its queue, unless it is there. */
export function listAwake(lane: Lane): void {
  if (lane.isListed) return;
  lane.isListed = true;
  lane.line.awake.push(lane);
}

type Hope = Pick<Parts, "hopeful" | "waits" | "lines" | "isStrict">;

/** So small a part of the gangs is gathered. Of more, most would find that others have taken what has come. */
const PART_GATHERED = 1 / 4;

/** Puts the lanes for which something may have come among the awake ones of their queues. False: they are too many. */
export function gatherHopeful({ hopeful, waits, lines }: Hope): boolean {
  let waiting = 0;
  for (const lists of [hopeful, waits.hopeful]) for (const list of lists) waiting += list.waiting.size;
  if (waiting > lines.entries.size * PART_GATHERED) return false;
  for (const lists of [hopeful, waits.hopeful]) for (const lane of lists.lanes()) listAwake(lane);
  return true;
}

/**
 * Ends the hope of a round. Lanes that were not looked at stay awake: if a bound ended the round, any may be such a
 * lane, else those of strict queues that stand behind the ones which were `passed`.
 */
export function endHope(parts: Hope, of: { readonly isCut: boolean; readonly passed: ReadonlySet<Lane> }): void {
  const { hopeful, waits, lines } = parts;
  const isLeft = (lane: Lane) => of.isCut || (parts.isStrict(lane.line.name) && !of.passed.has(lane));
  for (const lists of [hopeful, waits.hopeful]) {
    for (const lane of lists.lanes()) if (isLeft(lane)) lines.wake(lane);
    lists.clear();
  }
}

/** Keeps the lanes of a queue that are still awake, if some have come since or a round has walked through them. */
export function dropSleeping(line: Line, { isWalked = false } = {}): void {
  const { awake } = line;
  if (!isWalked && awake.length === line.keptAwake) return;
  let kept = 0;
  for (const lane of awake) {
    lane.isListed = lane.awake && lane.entries.length > 0;
    if (!lane.isListed) continue;
    awake[kept] = lane;
    kept += 1;
  }
  awake.length = kept;
  line.keptAwake = kept;
}

/** True if the nearest thing in the way of a refused gang is an older admission of its own: others may pass it. */
export function waitsForItself({ refusal }: Lane): boolean {
  return refusal !== null && !refusal.stoppedByQuota && onlyDrains(refusal.clusters);
}

/** True if each cluster that could take a gang still has objects of an older admission of it. */
export function onlyDrains({ all }: ClusterBlocks): boolean {
  const reasons = all.map(({ reason }) => reason);
  return reasons.includes("Draining") && !reasons.includes("NoCapacity");
}

/** Notes why rounds look at a lane although its lists do not say that they should. Null: they do not. */
export function setRestless(
  lane: Lane,
  restless: Lane["restless"],
  lines: Pick<GangLines, "restless" | "sleepless">,
): void {
  lane.line.restless += Number(restless !== null) - Number(lane.restless !== null);
  lane.restless = restless;
  lines.restless.delete(lane);
  lines.sleepless.delete(lane);
  if (restless !== null) lines.restless.add(lane);
  if (restless === "always" || restless === "tokens") lines.sleepless.add(lane);
}

/** Lets rounds look at a lane after any change, if they do not already. */
export function makeRestless(lane: Lane, { lines }: Pick<Parts, "lines">): void {
  if (lane.restless === null) setRestless(lane, "victims", lines);
}

/** Takes a lane out of the lists of those that wait. */
export function leaveLists(lane: Lane): void {
  for (const { waiting } of lane.waitsIn) waiting.delete(lane);
  for (const request of lane.requests) request.waiting.delete(lane);
  lane.waitsIn.length = 0;
  lane.requests.length = 0;
}

/** Forgets the head of a queue, and which of its lanes may get reservations. */
export function forgetHead(line: Line): void {
  line.head = null;
  line.waitedLong = null;
}

/** True if a lane is woken once there may be room for an option for which it has the quota. */
export function hearsOfRoom({ refusal }: Lane, { waits, block }: LaneOption): boolean {
  return waits || (block !== null && !refusal?.stoppedByQuota);
}
