/** What a round's turns ask of lanes. */
import { isHopeful, type Lane, type Line } from "./gang-lines.ts";

/** True if a lane is awake, or something may have come for it. */
export function isWakeful(lane: Lane): boolean {
  return lane.awake || isHopeful(lane);
}

/** Keeps the lanes of a queue that are still awake. */
export function dropSleeping(line: Line): void {
  const { awake } = line;
  let kept = 0;
  for (const lane of awake) {
    if (!lane.awake || lane.entries.length === 0) continue;
    awake[kept] = lane;
    kept += 1;
  }
  awake.length = kept;
}

/** True if the nearest thing in a gang's way is an older admission of its own: others may pass it. */
export function waitsForItself({ refusal }: Lane): boolean {
  if (refusal === null || refusal.stoppedByQuota) return false;
  const reasons = refusal.clusters.all.map(({ reason }) => reason);
  return reasons.includes("Draining") && !reasons.includes("NoCapacity");
}
