/**
 * Admits one waiting gang, or says why it waits. A gang's owner needs both: all its pods start together once the
 * quota, a flavor and the nodes of one cluster have room, and `gangway explain` names every obstacle.
 */

import { drainingAdmission } from "../job/job.ts";
import { memberCount } from "../job/roles.ts";
import { chooseCluster, refuseCluster } from "./choose-cluster.ts";
import { type FlavorChoice, flavorChoices, flavoredAmounts } from "./flavors.ts";
import { allMembers, fewestMembers, type MemberCounts, type MemberGroup, memberGroups } from "./gang.ts";
import type { PlanGang } from "./plan-gang.ts";
import { nextNumber, type PlanState, plannedOf, takeRoom } from "./plan-state.ts";
import type { PlannedAdmission, Refusal } from "./plan-types.ts";
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
export function admitGang(gang: PlanGang, state: PlanState): PlannedAdmission | RefusedGang {
  const queue = state.book.queue(gang.queue);
  if (queue === undefined) {
    const message = `there is no queue ${gang.queue}`;
    return { refusal: refuse(gang, { reason: "UnknownQueue", message }), inLine: null };
  }
  const ownReason = refuseForOwnReason(gang, state.nowMs);
  if (ownReason !== null) return { refusal: ownReason, inLine: null };
  if (gang.ask.service) return admitService(gang);
  const all = allMembers(gang.ask);
  const fewest = fewestMembers(gang.ask);
  const first = tryMembers(gang, queue, { members: all, state });
  if (!isFailedTry(first)) return first;
  const second = memberCount(fewest) < memberCount(all) ? tryMembers(gang, queue, { members: fewest, state }) : first;
  if (!isFailedTry(second)) return second;
  const inLine = second.stoppedByQuota ? planInLine(gang, second, state) : null;
  const refusal = refuseFor(gang, second);
  if (inLine === null) return { refusal, inLine };
  const message = refusal.message + lineWords(inLine.allocations.map(({ pool }) => pool));
  return { refusal: { ...refusal, message }, inLine };
}

/** Refuses a gang that waits for something which no other gang could take from it; null if it does not. */
function refuseForOwnReason(gang: PlanGang, nowMs: number): Refusal | null {
  const { suspended, awaitsResult, backoff } = gang;
  if (suspended) {
    return refuse(gang, { reason: "Suspended", message: "it is suspended" });
  }
  if (awaitsResult !== null) return refuse(gang, { reason: "WaitingForCache", message: awaitsResult });
  if (backoff !== null && backoff.notBeforeMs > nowMs) {
    const until = new Date(backoff.notBeforeMs).toISOString();
    const why = backoff.why === undefined ? "" : ` because ${backoff.why}`;
    const message = `its admission to ${backoff.lastCluster} was undone${why}; it may be admitted again at ${until}`;
    return refuse(gang, { reason: "Backoff", message, retryAtMs: backoff.notBeforeMs });
  }
  const draining = drainingAdmission(gang);
  if (draining !== null) {
    const message = `pods of its admission ${draining.number} still run on ${draining.cluster ?? "its service"}`;
    return refuse(gang, { reason: "Draining", message });
  }
  return null;
}

/**
 * Admits a job without pods. It needs no room in a cluster, only its turn in the queue; its plugin takes the tokens
 * that it needs.
 */
function admitService(gang: PlanGang): PlannedAdmission {
  return {
    kind: "admit",
    jobUid: gang.uid,
    askHash: gang.askHash,
    generation: gang.generation,
    admission: nextNumber(gang),
    cluster: null,
    admissionCounter: 0,
    members: {},
    flavors: {},
    nodeLabels: {},
    allocations: [],
  };
}

function tryMembers(
  gang: PlanGang,
  queue: PlanQueue,
  tried: { readonly members: MemberCounts; readonly state: PlanState },
): PlannedAdmission | FailedTry {
  const { members, state } = tried;
  const groups = memberGroups(gang.ask, members);
  const amounts = flavoredAmounts(groups, state.resources);
  // Members that come later get the same flavors, so these are chosen for the whole gang at once.
  const later = flavoredAmounts(memberGroups(gang.ask, allMembers(gang.ask)), state.resources);
  const needed = Object.fromEntries(Object.keys(later).map((resource) => [resource, amounts[resource] ?? 0]));
  const { choices, inLine, refusals: quotas } = flavorChoices(gang, queue, { amounts: needed, book: state.book });
  const looked = [...state.rooms.values()].map((room) => ({ room, refusal: refuseCluster(gang, room.cluster) }));
  const rooms = looked.flatMap(({ room, refusal }) => (refusal === null ? [room] : []));
  const clusters = looked.flatMap(({ refusal }) => (refusal === null ? [] : [refusal]));
  for (const choice of choices) {
    const { placement, refusals } = chooseCluster(gang, groups, { rooms, choice });
    if (placement !== null) {
      const number = nextNumber(gang);
      return takeRoom(gang, { kind: "admit", number, members, choice, amounts, placement }, state);
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
function planInLine(gang: PlanGang, { tried }: FailedTry, state: PlanState): PlannedAdmission | null {
  if (state.book.hasReserved) return null;
  const { members, groups, amounts, inLine, rooms } = tried;
  for (const choice of inLine) {
    const { placement } = chooseCluster(gang, groups, { rooms, choice });
    if (placement === null) continue;
    return plannedOf(gang, { kind: "admit", number: nextNumber(gang), members, choice, amounts, placement });
  }
  return null;
}

function isFailedTry(result: PlannedAdmission | FailedTry): result is FailedTry {
  return "stoppedByQuota" in result;
}
