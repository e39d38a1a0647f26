/** Connects the planner with the store, the tokens and this process' lease. */
import { PLANNER_LEASE } from "../adapters/store/fleet/leases.ts";
import type { Config } from "../config/config.ts";
import { createFleetPlanner } from "../planner/fleet-planner.ts";
import { createPlanner } from "../planner/planner.ts";
import type { FleetPlanner, PlannerQuota } from "../planner/ports.ts";
import { type Base, runLoops } from "./base.ts";
import { PlannerThread } from "./planner-thread.ts";

type PlannerConfig = Pick<Config, "database" | "plugins" | "reservationsPerPool">;

export function startPlanner(base: Base, quota: PlannerQuota, config: PlannerConfig): void {
  const { clock, store, telemetry, instrumentation, tell, heard, member, parts } = base;
  const lease = member.lease(PLANNER_LEASE, () => planner.wake());
  const planner = createPlanner(
    {
      clock,
      fleet: fleetPlanner(base, config, () => lease.epoch() === null),
      store: instrumentation.plannerStore(store.planner),
      quota,
      lease,
      wakeJob: tell.job,
      onChecked: telemetry.plannerStateChecked,
      ...instrumentation.plannerPorts,
    },
    { onError: (error) => telemetry.loopFailed({ loop: "planner", error }) },
  );
  heard.planner = planner.wake;
  runLoops(parts, planner.run);
}

/** In a thread of its own beside a server. A database in a directory has one connection, which this thread has. */
function fleetPlanner(
  { clock, store, parts }: Base,
  { database: server, plugins, reservationsPerPool }: PlannerConfig,
  isStopped: () => boolean,
): FleetPlanner {
  if (server === null) {
    const monotonicMs = () => clock.monotonicMs();
    return createFleetPlanner(store.planner, { isStopped, monotonicMs, reservationsPerPool });
  }
  const thread = new PlannerThread({
    server,
    plugins,
    reservationsPerPool,
    workingDirectory: process.cwd(),
    isStopped,
  });
  parts.defer(() => thread.close());
  return thread;
}
