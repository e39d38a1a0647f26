/** The order of a queue's lanes, which lasts over rounds. */
import { firstWhere } from "../../../runtime/first-where.ts";
import { compareEntries } from "./entry-order.ts";
import type { Entry, Lane, Line } from "./gang-lines.ts";

/** Forgets the order of a queue's lanes. */
export function forgetOrder(line: Line): void {
  line.order = null;
  line.waitedLong = null;
}

/** Lets gangs come to a lane or leave it, and moves the lane to its new place. A lane without gangs has none. */
export function changeLane(lane: Lane, change: () => void): void {
  const { line } = lane;
  const order = line.ageing === null ? line.order : null;
  const [before] = lane.entries;
  const at = order === null || before === undefined ? null : placeOf(order, before);
  change();
  line.order = order;
  line.waitedLong = null;
  const [after] = lane.entries;
  if (order === null || after === before) return;
  if (at !== null) order.splice(at, 1);
  if (after !== undefined) order.splice(placeOf(order, after), 0, lane);
}

/** The first place whose lane's first gang does not come before this one. */
function placeOf(order: readonly Lane[], entry: Entry): number {
  return firstWhere(0, order.length, (at) => compareEntries(order[at]?.entries[0] as Entry, entry) >= 0);
}
