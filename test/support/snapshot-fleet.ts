import type { PlanSnapshot } from "../../src/core/plan/model/snapshot.ts";
import type { FollowedFleet } from "../../src/planner/followed-fleet.ts";
import { plannerOf } from "./load-snapshot.ts";

/** A fleet that is loaded from a snapshot at each question. */
export function snapshotFleet(read: () => Promise<PlanSnapshot>, nowMs: () => number): FollowedFleet {
  return {
    read: async (use, signal) => {
      const snapshot = await read();
      return signal.aborted ? null : use({ planner: plannerOf(snapshot), callers: snapshot.callers, nowMs: nowMs() });
    },
    close: () => undefined,
  };
}
