import { compareText } from "../../../runtime/compare-text.ts";
import { liveAdmission } from "../../job/job.ts";
import type { Fleet } from "../fit/fleet.ts";
import type { PlannedEviction } from "../model/plan-types.ts";
import { QUEUE_STOPPED, stopMessage } from "../model/queue-stop.ts";
import { isFrozen } from "../preempt/preemptable-gangs.ts";
import { leaves } from "../queues/gang-class.ts";
import { compareGangs } from "../queues/order.ts";
import type { GangRecord } from "../queues/records.ts";

/**
 * The admissions to undo: those of gangs in queues that drain. Gangs that end or leave anyway, and those that use a
 * frozen pool, are left alone.
 */
export function evictionsOf(fleet: Pick<Fleet, "queues" | "quota">): readonly PlannedEviction[] {
  return [...fleet.queues.all.values()]
    .filter(({ stop, running }) => stop?.drains === true && running.size > 0)
    .sort((a, b) => compareText(a.name, b.name))
    .flatMap(({ running }) => [...running].filter(({ facts }) => !leaves(facts)).sort(compareGangs))
    .flatMap((gang) => evictionOf(fleet, gang));
}

function evictionOf(fleet: Pick<Fleet, "quota">, gang: GangRecord): readonly PlannedEviction[] {
  const { facts, gangQueue } = gang;
  const live = liveAdmission(facts);
  if (live === null || gangQueue.stop === null || isFrozen(fleet, gang, live)) return [];
  const message = stopMessage(facts.queue, gangQueue.stop);
  return [{ jobUid: facts.uid, queue: facts.queue, admission: live.number, reason: QUEUE_STOPPED, message }];
}
