import { specNow } from "../job/interruptible.ts";
import { isSuspended, type Job, liveAdmission } from "../job/job.ts";
import { memberCount, memberOrder } from "../job/roles.ts";
import type { Admission } from "../job/status.ts";
import type { Registry } from "../kinds/registry.ts";
import { placeAll } from "./fit-all.ts";
import { flavoredAmounts } from "./flavors.ts";
import { addedMembers, allMembers, type MemberCounts, memberGroups, podCount } from "./gang.ts";
import { type AdmissionDraft, type PlanState, takeRoom } from "./plan-state.ts";
import type { PlannedAdmission } from "./plan-types.ts";

/** A job with a live admission that has fewer members than the job. */
export type GrowingGang = { readonly job: Job; readonly admission: Admission };

/** The job as a gang that may grow. Null if it has all members, or its end or suspension was requested. */
export function growingGang(job: Job): GrowingGang | null {
  const admission = liveAdmission(job);
  if (admission === null || job.cancel !== null || job.deleteTimeMs !== null || isSuspended(job)) return null;
  return missingMembers(job, admission) > 0 ? { job, admission } : null;
}

/** True for a job whose gang may grow step by step. */
export function isElastic(job: Job, kinds: Registry): boolean {
  return (kinds.kindOf(job.spec.kind)?.elasticRoles?.(job.spec) ?? []).length > 0;
}

/**
 * Grows a gang in the cluster where it runs. It grows to all members in one step. A gang of an elastic kind grows by as
 * many members as there is room for. Null if it cannot grow now.
 */
export function growGang(gang: GrowingGang, state: PlanState): PlannedAdmission | null {
  const { job, admission } = gang;
  const missing = missingMembers(job, admission);
  const draftOf = (count: number) => draftGrowth(gang, addMembers(job, admission.members, count), state);
  const draft = draftOf(missing) ?? (isElastic(job, state.kinds) ? largest(draftOf, missing) : null);
  return draft === null ? null : takeRoom(job, draft, state);
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

function missingMembers(job: Job, admission: Admission): number {
  return memberCount(addedMembers(admission.members, allMembers(job.spec)));
}

/** These members and `count` more of the job, in the order in which members are admitted. */
function addMembers(job: Job, members: MemberCounts, count: number): MemberCounts {
  const missing = addedMembers(members, allMembers(job.spec));
  const all: Record<string, number> = {};
  let left = count;
  for (const role of memberOrder(job.spec)) {
    const more = Math.min(left, missing[role] ?? 0);
    all[role] = (members[role] ?? 0) + more;
    left -= more;
  }
  return all;
}

/** The growth to these members; null if there is no room for it now. */
function draftGrowth({ job, admission }: GrowingGang, members: MemberCounts, state: PlanState): AdmissionDraft | null {
  const room = state.rooms.get(admission.cluster ?? "");
  if (room === undefined || room.cluster.cordoned || !room.cluster.reachable) return null;
  const groups = memberGroups(specNow(job), addedMembers(admission.members, members));
  const amounts = flavoredAmounts(groups, state.resources);
  const isRefused = ([resource, need]: readonly [string, number]) =>
    state.book.refusals(job, admission.flavors[resource] ?? "", need).length > 0;
  if (Object.entries(amounts).some(isRefused)) return null;
  const placed = placeAll(room.shapes, groups, admission.nodeLabels);
  if (placed.placed < podCount(groups)) return null;
  const placement = { room, left: placed.left, nodeLabels: admission.nodeLabels };
  return { kind: "grow", number: admission.number, members, choice: admission.flavors, amounts, placement };
}
