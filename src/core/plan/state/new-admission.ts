import type { PlanGang } from "../plan-gang.ts";
import type { PlannedAdmission, PlannedAllocation } from "../plan-types.ts";

/** A job without pods needs no room in a cluster, only its turn; its plugin takes the tokens that it needs. */
export function serviceAdmission(gang: PlanGang): PlannedAdmission {
  return { ...newAdmission(gang, []), cluster: null, admissionCounter: 0, members: {}, flavors: {}, flavorLabels: {} };
}

/** The part of an admission that is the same wherever the gang runs. */
export function newAdmission(gang: PlanGang, allocations: readonly PlannedAllocation[]) {
  const { uid, askHash, generation, lastAdmission } = gang;
  // Numbers are never used twice: objects of an older admission are never adopted.
  return { kind: "admit" as const, jobUid: uid, askHash, generation, admission: lastAdmission + 1, allocations };
}
