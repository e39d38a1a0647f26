import { compareText } from "../../../runtime/compare-text.ts";
import { liveAdmission } from "../../job/job.ts";
import type { PlannedEviction } from "../plan-types.ts";
import { QUEUE_STOPPED, stopWords } from "../queue-stop.ts";
import type { FleetParts } from "./fleet-parts.ts";
import { compareEntries, type Entry } from "./gang-lines.ts";

/** The admissions to undo: those of gangs in queues that drain. Gangs that end or leave anyway are left alone. */
export function evictionsOf({ lines }: Pick<FleetParts, "lines">): readonly PlannedEviction[] {
  return [...lines.lines.values()]
    .filter(({ stop, running }) => stop?.drains === true && running.size > 0)
    .sort((a, b) => compareText(a.name, b.name))
    .flatMap(({ running }) => [...running].filter(stays).sort(compareEntries).flatMap(evictionOf));
}

function stays({ gang }: Entry): boolean {
  return !gang.ends && !gang.suspended && gang.evicted !== true;
}

function evictionOf({ gang, line }: Entry): readonly PlannedEviction[] {
  const live = liveAdmission(gang);
  if (live === null || line.stop === null) return [];
  const message = stopWords(gang.queue, line.stop);
  return [{ jobUid: gang.uid, queue: gang.queue, admission: live.number, reason: QUEUE_STOPPED, message }];
}
