import type { RoundContext } from "./carry-out.ts";
import type { FleetDecision } from "./ports.ts";

/** The preemptions of a round. */
export type RecordedPreemptions = { readonly nominated: number; readonly stale: number };

/**
 * Records the preemptions of a plan, and wakes the workers that undo the victims. One of which a job has moved on is
 * planned again. Then ends the nominations that the plan gives up.
 */
export async function recordPreemptions(
  context: RoundContext,
  { preemptions, withdrawn }: Pick<FleetDecision, "preemptions" | "withdrawn">,
): Promise<RecordedPreemptions> {
  const { store, fleet, clock, plannerEpoch, wakeJob } = context;
  let nominated = 0;
  if (preemptions.length > 0) {
    const outcomes = await store.recordPreemptions(preemptions, plannerEpoch, clock.nowMs());
    for (const [at, outcome] of outcomes.entries()) {
      if (outcome.kind === "stale") continue;
      nominated += 1;
      const shrunk = preemptions[at]?.victims.filter(({ keeps }) => keeps !== undefined) ?? [];
      for (const { jobUid } of [...outcome.evicted, ...shrunk]) wakeJob(jobUid);
    }
  }
  if (withdrawn.length > 0) await store.recordWithdrawals(withdrawn, plannerEpoch, clock.nowMs());
  const changed = preemptions.flatMap(({ planned, victims, takesOver = [] }) => {
    return [planned, ...victims, ...takesOver].map(({ jobUid }) => jobUid);
  });
  if (changed.length + withdrawn.length > 0) await fleet.reread([...new Set([...changed, ...withdrawn])]);
  return { nominated, stale: preemptions.length - nominated };
}
