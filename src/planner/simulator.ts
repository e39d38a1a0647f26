import type { Job } from "../core/job/job.ts";
import type { Registry } from "../core/kinds/registry.ts";
import type { PlanGang } from "../core/plan/model/plan-gang.ts";
import type { Simulation } from "../core/plan/model/simulation.ts";
import { SharedCalls } from "../runtime/shared-calls.ts";
import type { FollowedFleet } from "./followed-fleet.ts";

/**
 * How many waiting jobs of its queue are planned before a job that is judged. In a strict queue the first decides; in
 * others they take room only for the moment until the planner has looked at them.
 */
export const WAITING_BEFORE_MAX = 100;

type SimulatorPorts = {
  readonly kinds: Registry;
  readonly fleet: FollowedFleet;
  /** The first waiting gangs of this queue, at most `max`. */
  readonly firstWaiting: (of: { readonly queue: string; readonly max: number }) => Promise<readonly PlanGang[]>;
};

/** Judges a job that was not submitted; changes nothing. Null: the caller left before its turn. */
export type Simulator = (job: Job, signal: AbortSignal) => Promise<Simulation | null>;

/**
 * Makes the function that judges jobs. It reads the waiting gangs of one queue at a time. Calls for one queue that wait
 * at the same time share them.
 */
export function createSimulator({ kinds, fleet, firstWaiting }: SimulatorPorts): Simulator {
  const reads = new SharedCalls(1);
  return async (job, signal) => {
    const { queue } = job.spec.runPolicy.schedulingPolicy;
    const waiting = await reads.run(queue, () => firstWaiting({ queue, max: WAITING_BEFORE_MAX }), signal);
    if (waiting === null) return null;
    return fleet.read(
      ({ planner, callers, nowMs }) => planner.simulate(job, { kinds, nowMs, callers, waiting }),
      signal,
    );
  };
}
