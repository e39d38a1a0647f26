/** Connects the planner with the store, the tokens and this process' lease. */
import { PLANNER_LEASE } from "../adapters/store/fleet/leases.ts";
import { createFleetPlanner } from "../planner/fleet-planner.ts";
import { createPlanner } from "../planner/planner.ts";
import type { PlannerQuota } from "../planner/ports.ts";
import { type Base, runLoops } from "./base.ts";

export function startPlanner(base: Base, quota: PlannerQuota): void {
  const { clock, store, telemetry, instrumentation, tell, heard, member, parts } = base;
  const lease = member.lease(PLANNER_LEASE, () => planner.wake());
  const planner = createPlanner(
    {
      clock,
      fleet: createFleetPlanner(store.planner, {
        isStopped: () => lease.epoch() === null,
        monotonicMs: () => clock.monotonicMs(),
      }),
      store: instrumentation.plannerStore(store.planner),
      quota,
      lease,
      wakeJob: tell.job,
      ...instrumentation.plannerPorts,
    },
    { onError: (error) => telemetry.loopFailed({ loop: "planner", error }) },
  );
  heard.planner = planner.wake;
  runLoops(parts, planner.run);
}
