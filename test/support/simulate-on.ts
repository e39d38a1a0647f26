import type { Job } from "../../src/core/job/job.ts";
import type { Registry } from "../../src/core/kinds/registry.ts";
import type { Simulation } from "../../src/core/plan/model/simulation.ts";
import type { PlanSnapshot } from "../../src/core/plan/model/snapshot.ts";
import { simulate } from "../../src/core/plan/simulate.ts";
import { stateOf } from "./load-snapshot.ts";

/** Judges a job by a snapshot. */
export function simulateOn(
  snapshot: PlanSnapshot,
  submitted: Job,
  at: { readonly kinds: Registry; readonly nowMs: number },
): Simulation {
  return simulate(stateOf(snapshot), submitted, { ...at, callers: snapshot.callers });
}
