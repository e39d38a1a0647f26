/** Makes the lines of queues, and the lanes of gangs in them. */
import type { Entry, Lane, Line } from "./gang-lines.ts";
import { barredOf, laneKey } from "./gang-place.ts";

/** A lane of one gang that is in no queue's lanes. */
export function ownLane(entry: Entry): Lane {
  return newLane(laneKey(entry.gang, entry.line), entry);
}

/*
 * The objects are written out: one that is put together of others keeps most of its fields in another place in memory.
 */

export function newLane(key: string, { gang, line, shape, account }: Entry): Lane {
  const { queue, namespace, project, priority } = gang;
  return {
    awake: false,
    isListed: false,
    requests: [],
    waitsIn: [],
    entries: [],
    at: 0,
    restless: null,
    refusal: null,
    options: undefined,
    line,
    shape,
    account,
    priority,
    barred: barredOf(gang),
    maySearch: true,
    toldUpTo: 0,
    closedBy: [],
    full: null,
    said: 0,
    key,
    queue,
    namespace,
    project,
  };
}

export function newLine(name: string, { stop, ageing }: Pick<Line, "stop" | "ageing">): Line {
  return {
    name,
    stop,
    passedOver: false,
    growing: [],
    stretching: [],
    awake: [],
    keptAwake: 0,
    head: null,
    reserved: null,
    full: null,
    lanes: new Map(),
    order: null,
    waitedLong: null,
    hasUnflavored: null,
    restless: 0,
    waiting: 0,
    saidHead: "",
    ageing,
    rankedMs: null,
    held: new Set<Entry>(),
    running: new Set<Entry>(),
    runners: null,
  };
}
