/** The order of admission in queues whose jobs age. */
import { type AgeingInBands, effectivePriority, nextStepMs } from "../ageing.ts";
import { compareAges } from "./entry-order.ts";
import { type Entry, headOf, type Line } from "./gang-lines.ts";
import { forgetOrder } from "./lane-order.ts";

/** A gang's priority in the order of admission. Only gangs that wait age. */
export function rankOf({ gang, line: { ageing } }: Pick<Entry, "gang" | "line">, nowMs: number): number {
  return ageing === null || !gang.waits ? gang.priority : effectivePriority(gang, ageing, nowMs);
}

/** Compares the places of two gangs in the order of admission. */
export function compareAged(a: Entry, b: Entry, nowMs: number): number {
  return rankOf(b, nowMs) - rankOf(a, nowMs) || compareAges(a, b);
}

/** Forgets the heads and the orders of queues whose order may have changed by time alone since `noteSteps`. */
export function passSteps(lines: Iterable<Line>, nowMs: number): void {
  for (const line of lines) {
    const { rankedMs } = line;
    if (rankedMs === null || (nowMs >= rankedMs.from && nowMs < rankedMs.until)) continue;
    line.head = null;
    forgetOrder(line);
  }
}

/**
 * Notes until when the order of each queue stays as it is, and returns the first such time. The first gang of a lane
 * goes before its others, so that the order of the first ones is enough. Infinite: no order changes by time alone.
 */
export function noteSteps(lines: Iterable<Line>, nowMs: number): number {
  let least = Number.POSITIVE_INFINITY;
  for (const line of lines) {
    const { ageing } = line;
    line.rankedMs = ageing === null ? null : { from: nowMs, until: nextStepIn(line, ageing, nowMs) };
    if (line.stop === null) least = Math.min(least, line.rankedMs?.until ?? least);
  }
  return least;
}

function nextStepIn({ lanes }: Line, ageing: AgeingInBands, nowMs: number): number {
  let least = Number.POSITIVE_INFINITY;
  for (const lane of lanes.values()) {
    // The first gang, and the first one that the round has left.
    for (const entry of [lane.entries[0], headOf(lane)]) {
      if (entry !== undefined) least = Math.min(least, nextStepMs(entry.gang, ageing, nowMs));
    }
  }
  return least;
}
