/**
 * Admits one waiting gang, or says why it waits. A gang's owner needs both: all its pods start together once the
 * quota, a flavor and the nodes of one cluster have room, and `gangway explain` names every obstacle.
 */

import { specNow } from "../job/interruptible.ts";
import { awaitsResult, drainingAdmission, isSuspended, type Job } from "../job/job.ts";
import { firstMembers, memberCount } from "../job/roles.ts";
import { isService } from "../kinds/kind.ts";
import { chooseCluster, refuseCluster } from "./choose-cluster.ts";
import { type FlavorChoice, flavorChoices, flavoredAmounts } from "./flavors.ts";
import { allMembers, type MemberCounts, type MemberGroup, memberGroups } from "./gang.ts";
import { nextNumber, type PlanState, plannedOf, takeRoom } from "./plan-state.ts";
import type { PlannedAdmission, Refusal } from "./plan-types.ts";
import { queueOf } from "./quota-book.ts";
import { type GangObstacles, lineWords, refuse, refuseFor } from "./refuse.ts";
import type { Room } from "./rooms.ts";
import type { PlanQueue } from "./snapshot.ts";

/** A gang that cannot be admitted now. */
type RefusedGang = {
  readonly refusal: Refusal;
  /**
   * The admission that it would get if its pools had room: it has a cluster and lacks nothing else. Null: it lacks
   * something else, or another gang has the place in the waiting line.
   */
  readonly inLine: PlannedAdmission | null;
};

/**
 * Admits a waiting gang with all its members, else with the fewest that it accepts, or says why neither is possible.
 */
export function admitGang(job: Job, state: PlanState): PlannedAdmission | RefusedGang {
  const queue = state.book.queue(queueOf(job));
  if (queue === undefined) {
    const message = `there is no queue ${queueOf(job)}`;
    return { refusal: refuse(job, { reason: "UnknownQueue", message }), inLine: null };
  }
  const ownReason = refuseForOwnReason(job, state.nowMs);
  if (ownReason !== null) return { refusal: ownReason, inLine: null };
  if (isService(state.kinds.kindOf(job.spec.kind))) return admitService(job, state);
  const all = allMembers(job.spec);
  const fewest = firstMembers(job.spec, job.spec.runPolicy.schedulingPolicy.minAvailable);
  const first = tryMembers(job, queue, { members: all, state });
  if (!isFailedTry(first)) return first;
  const second = memberCount(fewest) < memberCount(all) ? tryMembers(job, queue, { members: fewest, state }) : first;
  if (!isFailedTry(second)) return second;
  const inLine = second.stoppedByQuota ? planInLine(job, second, state) : null;
  const refusal = refuseFor(job, second);
  if (inLine === null) return { refusal, inLine };
  const message = refusal.message + lineWords(inLine.allocations.map(({ pool }) => pool));
  return { refusal: { ...refusal, message }, inLine };
}

/** Refuses a gang that waits for something which no other gang could take from it; null if it does not. */
function refuseForOwnReason(job: Job, nowMs: number): Refusal | null {
  if (isSuspended(job)) {
    return refuse(job, { reason: "Suspended", message: "it is suspended" });
  }
  if (awaitsResult(job)) {
    const message =
      job.status.waiting?.reason === "WaitingForCache" ? job.status.waiting.message : "earlier results are looked for";
    return refuse(job, { reason: "WaitingForCache", message });
  }
  const backoff = job.status.backoff;
  if (backoff !== null && backoff.notBeforeMs > nowMs) {
    const until = new Date(backoff.notBeforeMs).toISOString();
    const why = backoff.why === undefined ? "" : ` because ${backoff.why}`;
    const message = `its admission to ${backoff.lastCluster} was undone${why}; it may be admitted again at ${until}`;
    return refuse(job, { reason: "Backoff", message, retryAtMs: backoff.notBeforeMs });
  }
  const draining = drainingAdmission(job);
  if (draining !== null) {
    const message = `pods of its admission ${draining.number} still run on ${draining.cluster ?? "its service"}`;
    return refuse(job, { reason: "Draining", message });
  }
  return null;
}

/**
 * Admits a job without pods. It needs no room in a cluster, only its turn in the queue; its plugin takes the tokens
 * that it needs.
 */
function admitService(job: Job, state: PlanState): PlannedAdmission {
  return {
    kind: "admit",
    jobUid: job.uid,
    jobVersion: job.version,
    admission: nextNumber(job, state),
    cluster: null,
    admissionCounter: 0,
    members: {},
    flavors: {},
    nodeLabels: {},
    allocations: [],
  };
}

function tryMembers(
  job: Job,
  queue: PlanQueue,
  gang: { readonly members: MemberCounts; readonly state: PlanState },
): PlannedAdmission | FailedTry {
  const { members, state } = gang;
  const groups = memberGroups(specNow(job), members);
  const amounts = flavoredAmounts(groups, state.resources);
  // Members that come later get the same flavors, so these are chosen for the whole gang at once.
  const later = flavoredAmounts(memberGroups(specNow(job), allMembers(job.spec)), state.resources);
  const needed = Object.fromEntries(Object.keys(later).map((resource) => [resource, amounts[resource] ?? 0]));
  const { choices, inLine, refusals: quotas } = flavorChoices(job, queue, { amounts: needed, book: state.book });
  const looked = [...state.rooms.values()].map((room) => ({ room, refusal: refuseCluster(job, room.cluster) }));
  const rooms = looked.flatMap(({ room, refusal }) => (refusal === null ? [room] : []));
  const clusters = looked.flatMap(({ refusal }) => (refusal === null ? [] : [refusal]));
  for (const choice of choices) {
    const { placement, refusals } = chooseCluster(job, groups, { rooms, choice });
    if (placement !== null) {
      const number = nextNumber(job, state);
      return takeRoom(job, { kind: "admit", number, members, choice, amounts, placement }, state);
    }
    clusters.push(...refusals);
  }
  return { quotas, clusters, stoppedByQuota: choices.length === 0, tried: { members, groups, amounts, inLine, rooms } };
}

/** Everything in the way of some members of a gang, and the facts to look further. */
type FailedTry = GangObstacles & {
  readonly tried: {
    readonly members: MemberCounts;
    readonly groups: readonly MemberGroup[];
    readonly amounts: Readonly<Record<string, number>>;
    /** The flavors that would do if pools had room. */
    readonly inLine: readonly FlavorChoice[];
    readonly rooms: readonly Room[];
  };
};

/**
 * Plans the admission of a gang that waits for tokens of pools alone. Null if no cluster has room for it, or if another
 * gang has the place in the waiting line.
 */
function planInLine(job: Job, { tried }: FailedTry, state: PlanState): PlannedAdmission | null {
  if (state.book.hasReserved) return null;
  const { members, groups, amounts, inLine, rooms } = tried;
  for (const choice of inLine) {
    const { placement } = chooseCluster(job, groups, { rooms, choice });
    if (placement === null) continue;
    return plannedOf(job, { kind: "admit", number: nextNumber(job, state), members, choice, amounts, placement });
  }
  return null;
}

function isFailedTry(result: PlannedAdmission | FailedTry): result is FailedTry {
  return "stoppedByQuota" in result;
}
