/** The transitions of a queue's record. */
import {
  type GangClass,
  type GangQueue,
  type GangRecord,
  type QueueAdmissions,
  type Shortfall,
  type WaitedLong,
  written,
} from "./records.ts";

/** Puts a gang class among the active ones of its queue, unless it is there. */
export function addActive(gangClass: GangClass): void {
  if (gangClass.isInActive) return;
  written(gangClass).isInActive = true;
  written(gangClass.gangQueue).active.push(gangClass);
}

/**
 * Keeps the gang classes of a queue that are still active, if some have come since or a round has walked through them.
 */
export function dropInactive(gangQueue: GangQueue, { isWalked = false } = {}): void {
  const own = written(gangQueue);
  const { active } = own;
  if (!isWalked && active.length === gangQueue.activeBefore) return;
  let kept = 0;
  for (const gangClass of active) {
    const isInActive = gangClass.active && gangClass.gangs.length > 0;
    written(gangClass).isInActive = isInActive;
    if (!isInActive) continue;
    active[kept] = gangClass;
    kept += 1;
  }
  active.length = kept;
  own.activeBefore = kept;
}

/** Sets the gang class that no other one of a strict queue overtakes. Null: it is not known. */
export function setHead(gangQueue: GangQueue, head: GangClass | null): void {
  written(gangQueue).head = head;
}

/** Forgets the head of a queue, and which of its gang classes may get reservations. */
export function forgetHead(gangQueue: GangQueue): void {
  const own = written(gangQueue);
  own.head = null;
  own.waitedLong = null;
}

/** Sets the first gang with a reservation in a strict queue. Null: there is none. */
export function reserve(gangQueue: GangQueue, gang: GangRecord | null): void {
  written(gangQueue).reserved = gang;
}

/** Records that a round has skipped the gang classes of a queue that runs as many jobs as it may. */
export function noteSkipped(gangQueue: GangQueue): void {
  written(gangQueue).skipped = true;
}

/** Records the head behind which the gangs of a strict queue wait, as was reported. */
export function noteReportedHead(gangQueue: GangQueue, uid: string): void {
  written(gangQueue).reportedHead = uid;
}

/** Records the gang classes of a queue that may get reservations. */
export function noteWaitedLong(gangQueue: GangQueue, waited: WaitedLong): void {
  written(gangQueue).waitedLong = waited;
}

export function forgetWaitedLong(gangQueue: GangQueue): void {
  written(gangQueue).waitedLong = null;
}

/** Records whether some of a queue's gang classes request no flavored resource. Null: it is not known. */
export function noteUnflavored(gangQueue: GangQueue, has: boolean | null): void {
  written(gangQueue).hasUnflavored = has;
}

/** Records the running gangs of a queue as searches for victims see them. Null: they are not known. */
export function noteAdmissions(gangQueue: GangQueue, runningAdmissions: QueueAdmissions | null): void {
  written(gangQueue).runningAdmissions = runningAdmissions;
}

/** Records the members that a running gang lacks. */
export function noteShortfall(gang: GangRecord, shortfall: Shortfall): void {
  written(gang).shortfall = shortfall;
}
