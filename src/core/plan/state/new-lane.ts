/** Makes the lines of queues, and the lanes of gangs in them. */
import type { Entry, Lane, Line } from "./gang-lines.ts";
import { barredOf, laneKey } from "./gang-place.ts";

/** A lane of one gang that is in no queue's lanes. */
export function ownLane(entry: Entry): Lane {
  return newLane(laneKey(entry.gang, entry.line), entry);
}

export function newLane(key: string, { gang, line, shape, account }: Entry): Lane {
  const barred = barredOf(gang);
  const { queue, namespace, project } = gang;
  const at = {
    queue,
    namespace,
    project,
    full: null,
    at: 0,
    awake: false,
    isListed: false,
    restless: null,
    maySearch: true,
    toldUpTo: 0,
    refusal: null,
    said: 0,
    requests: [],
    closedBy: [],
    waitsIn: [],
    options: undefined,
  };
  return { key, line, shape, account, priority: gang.priority, barred, entries: [], ...at };
}

export function newLine(name: string, settings: Pick<Line, "stop" | "ageing">): Line {
  const lists = { growing: [], stretching: [], held: new Set<Entry>(), running: new Set<Entry>(), runners: null };
  const limit = { full: null, passedOver: false, reserved: null, restless: 0, keptAwake: 0 };
  const head = { head: null, saidHead: "", order: null, waitedLong: null, hasUnflavored: null, rankedMs: null };
  return { name, lanes: new Map(), awake: [], ...lists, ...limit, ...settings, ...head, waiting: 0 };
}
