import type { ClusterState } from "../capacity/cluster-state.ts";
import type { FlavorChoice } from "../model/flavors.ts";
import type { PlanGang } from "../model/plan-gang.ts";
import type { PlannedAdmission, PlannedAllocation } from "../model/plan-types.ts";
import { amountsByPool } from "../queues/ask-shape.ts";

/** A job without pods needs no capacity in a cluster, only its turn; its plugin takes the tokens that it needs. */
export function serviceAdmission(gang: PlanGang): PlannedAdmission {
  return { ...newAdmission(gang, []), cluster: null, admissionCounter: 0, members: {}, flavors: {}, flavorLabels: {} };
}

/** The part of an admission that is the same wherever the gang runs. */
export function newAdmission(gang: PlanGang, allocations: readonly PlannedAllocation[]) {
  const { uid, askHash, generation, lastAdmission } = gang;
  // Numbers are never used twice: objects of an older admission are never adopted.
  return { kind: "admit" as const, jobUid: uid, askHash, generation, admission: lastAdmission + 1, allocations };
}

/** The allocations of some units of flavored resources, one for each pool. */
export function allocationsOf(
  { project, namespace, queue }: PlanGang,
  units: Readonly<Record<string, number>>,
  choice: FlavorChoice,
): readonly PlannedAllocation[] {
  return [...amountsByPool(units, choice)].map(([pool, amount]) => ({ pool, amount, project, namespace, queue }));
}

/** The cluster of an admission or a growth, and the value of its counter when that is recorded in the plan's order. */
export function placeIn({ name, facts, planned }: ClusterState) {
  const { simulated = false, admissionCounter = 0 } = facts ?? {};
  return { cluster: name, ...(simulated ? { simulated } : {}), admissionCounter: admissionCounter + planned };
}
