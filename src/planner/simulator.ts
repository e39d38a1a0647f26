import type { Job } from "../core/job/job.ts";
import type { Registry } from "../core/kinds/registry.ts";
import { type Simulation, simulateOn } from "../core/plan/simulate.ts";
import type { PlanSnapshot } from "../core/plan/snapshot.ts";
import type { Clock } from "../runtime/clock.ts";
import { SharedCalls } from "../runtime/shared-calls.ts";

/**
 * How many waiting jobs of its queue are planned before a job that is judged. In a strict queue the first decides; in
 * others they take room only for the moment until the planner has looked at them.
 */
export const WAITING_BEFORE_MAX = 100;

type SimulatorPorts = {
  readonly clock: Pick<Clock, "nowMs">;
  readonly kinds: Registry;
  /** A snapshot with only the first waiting jobs of this queue, at most `max`. */
  readonly snapshotOfQueue: (of: { readonly queue: string; readonly max: number }) => Promise<PlanSnapshot>;
};

/** Judges a job that was not submitted; changes nothing. Null: the caller left before its turn. */
export type Simulator = (job: Job, signal: AbortSignal) => Promise<Simulation | null>;

/**
 * Makes the function that judges jobs. It reads one snapshot at a time, because each may be large. Calls for one queue
 * that wait at the same time share one.
 */
export function createSimulator({ clock, kinds, snapshotOfQueue }: SimulatorPorts): Simulator {
  const reads = new SharedCalls(1);
  return async (job, signal) => {
    const { queue } = job.spec.runPolicy.schedulingPolicy;
    const snapshot = await reads.run(queue, () => snapshotOfQueue({ queue, max: WAITING_BEFORE_MAX }), signal);
    return snapshot === null ? null : simulateOn(snapshot, job, { kinds, nowMs: clock.nowMs() });
  };
}
