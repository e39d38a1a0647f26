import { RefusalMessages } from "../../src/core/plan/explain/refusal-messages.ts";
import type { Plan, Refusal } from "../../src/core/plan/model/plan-types.ts";
import type { PlanSnapshot } from "../../src/core/plan/model/snapshot.ts";
import type { Round } from "../../src/core/plan/preempt/round.ts";
import type { FleetPlan } from "../../src/core/plan/round/run-round.ts";
import { stateOf } from "./load-snapshot.ts";

const UNBOUNDED = { admissionsMax: Number.POSITIVE_INFINITY };

/**
 * Decides from the snapshot and the time alone which gangs are admitted now and where, which grow, and why
 * each of the others waits. Every waiting job is admitted or refused exactly once; the same inputs give the same plan.
 * It loads the planner's state from the snapshot, and runs one round of it.
 */
export function plan(snapshot: PlanSnapshot, { nowMs }: { readonly nowMs: number }): Plan {
  let refusals: readonly Refusal[] = [];
  const readRefusals = (made: FleetPlan, round: Round) => {
    refusals = refusalsOf(made, round, snapshot);
  };
  const { admissions, inLine, replanAtMs } = stateOf(snapshot).round(nowMs, UNBOUNDED, readRefusals);
  return { admissions, inLine, refusals, replanAtMs };
}

/**
 * The refusals, with the room that the round has left. They come in the order in which the round looked at gangs; those
 * that are like a refused gang but for their age follow it.
 */
function refusalsOf({ refused, admissions }: FleetPlan, { fleet, pendingUse }: Round, { callers }: PlanSnapshot) {
  const messages = new RefusalMessages(fleet, { callers, admissions, pendingUse });
  return refused.map(({ gang, cause }) => messages.refusalOf(gang, cause));
}
