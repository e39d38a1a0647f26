import type { PlannedRun } from "../../job/placement/placement.ts";
import type { ClusterState } from "../capacity/cluster-state.ts";
import { plannedRuns } from "../capacity/planned-runs.ts";
import { boundsOf, type Together } from "../domains/wish.ts";
import type { MemberCounts } from "../model/gang.ts";
import type { PlanGang } from "../model/plan-gang.ts";
import type { PlannedAdmission, PlannedAllocation } from "../model/plan-types.ts";
import type { TryGroup } from "../queues/records.ts";
import type { PoolAmounts } from "../usage/branch-use.ts";

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

/** The allocations of some amounts, one for each pool. */
export function allocationsOf(
  { project, namespace, queue }: PlanGang,
  amounts: PoolAmounts,
): readonly PlannedAllocation[] {
  return [...amounts].map(([pool, amount]) => ({ pool, amount, project, namespace, queue }));
}

/** The nodes of members that were just placed after a mark. `from`: the members that there were before. */
export function runsOf(
  { free }: Pick<ClusterState, "free">,
  mark: number,
  of: { readonly groups: readonly TryGroup[]; readonly together: Together | null; readonly from?: MemberCounts },
): readonly PlannedRun[] {
  const { groups, together, from = {} } = of;
  const toPlace = groups.map(({ fit, roles, wish }) => {
    const members = roles.map(({ role, count }) => ({ role, first: from[role] ?? 0, count }));
    return { fit, members, wishes: wish !== undefined, bounds: boundsOf(together, fit, wish) };
  });
  return plannedRuns(free, mark, toPlace);
}

/** The cluster of an admission or a growth, and the value of its counter when that is recorded in the plan's order. */
export function placeIn({ name, facts, planned }: ClusterState) {
  const { simulated = false, admissionCounter = 0 } = facts ?? {};
  return { cluster: name, ...(simulated ? { simulated } : {}), admissionCounter: admissionCounter + planned };
}
