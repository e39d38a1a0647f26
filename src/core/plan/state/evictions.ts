import { compareText } from "../../../runtime/compare-text.ts";
import { liveAdmission } from "../../job/job.ts";
import type { PlannedEviction } from "../plan-types.ts";
import { QUEUE_STOPPED, stopWords } from "../queue-stop.ts";
import { compareEntries } from "./entry-order.ts";
import type { FleetParts } from "./fleet-parts.ts";
import type { Entry } from "./gang-lines.ts";
import { leaves } from "./gang-place.ts";
import { isFrozen } from "./who-gives-way.ts";

/**
 * The admissions to undo: those of gangs in queues that drain. Gangs that end or leave anyway, and those that use a
 * frozen pool, are left alone.
 */
export function evictionsOf(parts: Pick<FleetParts, "lines" | "quota">): readonly PlannedEviction[] {
  return [...parts.lines.lines.values()]
    .filter(({ stop, running }) => stop?.drains === true && running.size > 0)
    .sort((a, b) => compareText(a.name, b.name))
    .flatMap(({ running }) => [...running].filter(({ gang }) => !leaves(gang)).sort(compareEntries))
    .flatMap((entry) => evictionOf(parts, entry));
}

function evictionOf(parts: Pick<FleetParts, "quota">, entry: Entry): readonly PlannedEviction[] {
  const { gang, line } = entry;
  const live = liveAdmission(gang);
  if (live === null || line.stop === null || isFrozen(parts, entry, live)) return [];
  const message = stopWords(gang.queue, line.stop);
  return [{ jobUid: gang.uid, queue: gang.queue, admission: live.number, reason: QUEUE_STOPPED, message }];
}
