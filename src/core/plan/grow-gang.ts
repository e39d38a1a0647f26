import { specNow } from "../job/interruptible.ts";
import type { Job } from "../job/job.ts";
import { currentAdmission } from "../job/job.ts";
import { memberCount, memberOrder } from "../job/roles.ts";
import { isTerminal } from "../job/status.ts";
import type { Registry } from "../kinds/registry.ts";
import { placeAll } from "./fit-all.ts";
import { flavoredAmounts } from "./flavors.ts";
import { addedMembers, allMembers, type MemberCounts, memberGroups, podCount } from "./gang.ts";
import { type AdmissionDraft, type PlanState, takeRoom } from "./plan-state.ts";
import type { PlannedAdmission } from "./plan-types.ts";
import { queueOf } from "./quota-book.ts";

/**
 * Grows a live admission that has fewer members than its job, in the cluster where it runs. It grows to all members in
 * one step. A gang of an elastic kind grows by as many members as there is room for. Null if it cannot grow now.
 */
export function growGang(job: Job, state: PlanState): PlannedAdmission | null {
  if (!mayGrow(job)) return null;
  const admission = currentAdmission(job);
  const now = admission?.members ?? {};
  const all = memberMax(now, allMembers(job.spec));
  const whole = growTo(job, all, state);
  if (whole !== null || !isElastic(job, state.kinds)) return whole;
  // The most that fits, by bisection: if a number fits, every smaller one does too.
  let [fits, tooMany] = [0, memberCount(all) - memberCount(now)];
  let best: MemberCounts | null = null;
  while (tooMany - fits > 1) {
    const count = Math.floor((fits + tooMany) / 2);
    const members = membersAfter(job, now, count);
    if (draftGrowth(job, members, state) === null) tooMany = count;
    else [fits, best] = [count, members];
  }
  return best === null ? null : growTo(job, best, state);
}

/** True for a job whose gang may grow step by step. */
export function isElastic(job: Job, kinds: Registry): boolean {
  return (kinds.kindOf(job.spec.kind)?.elasticRoles?.(job.spec) ?? []).length > 0;
}

/** True for a live admission with fewer members than its job, unless the end or suspension of the job was requested. */
export function mayGrow(job: Job): boolean {
  const admission = currentAdmission(job);
  if (admission === null || admission.state !== "live" || isTerminal(job.status)) return false;
  if (job.cancel !== null || job.deleteTimeMs !== null || job.spec.runPolicy.suspend === true) return false;
  return Object.entries(allMembers(job.spec)).some(([role, count]) => count > (admission.members[role] ?? 0));
}

/** The members that a gang has now and `count` more, in the order in which members are admitted. */
function membersAfter(job: Job, now: MemberCounts, count: number): MemberCounts {
  const members: Record<string, number> = { ...now };
  let left = count;
  for (const role of memberOrder(job.spec)) {
    const more = Math.min(left, Math.max(0, (job.spec.replicaSpecs[role]?.replicas ?? 0) - (members[role] ?? 0)));
    members[role] = (members[role] ?? 0) + more;
    left -= more;
  }
  return members;
}

function memberMax(a: MemberCounts, b: MemberCounts): MemberCounts {
  const roles = [...new Set([...Object.keys(a), ...Object.keys(b)])];
  return Object.fromEntries(roles.map((role) => [role, Math.max(a[role] ?? 0, b[role] ?? 0)]));
}

function growTo(job: Job, members: MemberCounts, state: PlanState): PlannedAdmission | null {
  const draft = draftGrowth(job, members, state);
  return draft === null ? null : takeRoom(job, draft, state);
}

/** The growth to these members; null if there is no room for it now. */
function draftGrowth(job: Job, members: MemberCounts, state: PlanState): AdmissionDraft | null {
  const admission = currentAdmission(job);
  const queue = state.book.queue(queueOf(job));
  const room = state.rooms.get(admission?.cluster ?? "");
  if (admission === null || queue === undefined || room === undefined) return null;
  if (room.cluster.cordoned || !room.cluster.reachable || room.shapes === null) return null;
  const groups = memberGroups(specNow(job), addedMembers(admission.members, members));
  const amounts = flavoredAmounts(groups, state.resources);
  const refused = Object.entries(amounts).some(([resource, need]) => {
    const quota = queue.quotas.find((known) => known.flavor === admission.flavors[resource]);
    return quota === undefined || state.book.refusals(job, quota.flavor, need).length > 0;
  });
  if (refused) return null;
  const placed = placeAll(room.shapes, groups, admission.nodeLabels);
  if (placed.placed < podCount(groups)) return null;
  const placement = { room, left: placed.left, nodeLabels: admission.nodeLabels };
  return { kind: "grow", number: admission.number, members, choice: admission.flavors, amounts, placement };
}
