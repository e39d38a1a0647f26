import { liveAdmission } from "../job/job.ts";
import { memberCount } from "../job/roles.ts";
import type { Ask } from "./ask.ts";
import { placeAll } from "./fit-all.ts";
import { flavoredAmounts } from "./flavors.ts";
import { addedMembers, allMembers, type MemberCounts, memberGroups, podCount } from "./gang.ts";
import type { PlanGang, PlannedFrom } from "./plan-gang.ts";
import { type AdmissionDraft, type PlanState, takeRoom } from "./plan-state.ts";
import type { PlannedAdmission } from "./plan-types.ts";
import type { PlanCluster } from "./snapshot.ts";

/** A gang with a live admission that has fewer members than its job. */
export type GrowingGang = { readonly gang: PlanGang; readonly admission: PlannedFrom };

/** The gang as one that may grow. Null if it has all members, or its end or suspension was requested. */
export function growingGang(gang: PlanGang): GrowingGang | null {
  const admission = liveAdmission(gang);
  if (admission === null || gang.ends || gang.suspended) return null;
  return missingMembers(gang.ask, admission) > 0 ? { gang, admission } : null;
}

/**
 * Grows a gang in the cluster where it runs. It grows to all members in one step. A gang of an elastic kind grows by as
 * many members as there is room for. Null if it cannot grow now.
 */
export function growGang(growing: GrowingGang, state: PlanState): PlannedAdmission | null {
  const { gang, admission } = growing;
  const missing = missingMembers(gang.ask, admission);
  const draftOf = (count: number) => draftGrowth(growing, addMembers(gang.ask, admission.members, count), state);
  const draft = draftOf(missing) ?? (gang.ask.elastic ? largest(draftOf, missing) : null);
  return draft === null ? null : takeRoom(gang, draft, state);
}

/** The draft of the most members, fewer than `tooMany`. If a number of members has a draft, every smaller one does. */
function largest(draftOf: (count: number) => AdmissionDraft | null, tooMany: number): AdmissionDraft | null {
  let [least, most] = [1, tooMany - 1];
  let best: AdmissionDraft | null = null;
  while (least <= most) {
    const count = Math.floor((least + most) / 2);
    const draft = draftOf(count);
    if (draft === null) most = count - 1;
    else [least, best] = [count + 1, draft];
  }
  return best;
}

function missingMembers(ask: Ask, admission: PlannedFrom): number {
  return memberCount(addedMembers(admission.members, allMembers(ask)));
}

/** These members and `count` more of the gang, in the order in which members are admitted. */
function addMembers(ask: Ask, members: MemberCounts, count: number): MemberCounts {
  const missing = addedMembers(members, allMembers(ask));
  const all: Record<string, number> = {};
  let left = count;
  for (const { role } of ask.roles) {
    const more = Math.min(left, missing[role] ?? 0);
    all[role] = (members[role] ?? 0) + more;
    left -= more;
  }
  return all;
}

function takesMembers({ cordoned, retired = false, reachable }: PlanCluster): boolean {
  return reachable && !cordoned && !retired;
}

/** The growth to these members; null if there is no room for it now. */
function draftGrowth({ gang, admission }: GrowingGang, members: MemberCounts, state: PlanState): AdmissionDraft | null {
  const room = state.rooms.get(admission.cluster ?? "");
  if (room === undefined || !takesMembers(room.cluster)) return null;
  const groups = memberGroups(gang.ask, addedMembers(admission.members, members));
  const amounts = flavoredAmounts(groups, state.resources);
  const isRefused = ([resource, need]: readonly [string, number]) =>
    state.book.refusals(gang, admission.flavors[resource] ?? "", need).length > 0;
  if (Object.entries(amounts).some(isRefused)) return null;
  const placed = placeAll(room.shapes, groups, admission.nodeLabels);
  if (placed.placed < podCount(groups)) return null;
  const placement = { room, left: placed.left, nodeLabels: admission.nodeLabels };
  return { kind: "grow", number: admission.number, members, choice: admission.flavors, amounts, placement };
}
