import { liveAdmission } from "../../job/job.ts";
import { memberCount } from "../../job/roles.ts";
import type { ClusterState } from "../capacity/cluster-state.ts";
import type { FitClass } from "../capacity/fit-classes.ts";
import { fitAdded, placeAdded } from "../domains/place-added.ts";
import type { Fleet } from "../fit/fleet.ts";
import { groupsOf, togetherOf } from "../fit/requests.ts";
import { addedMembers, type MemberCounts } from "../model/gang.ts";
import type { PlannedFrom } from "../model/plan-gang.ts";
import type { PlannedAdmission } from "../model/plan-types.ts";
import { amountsOf, partOf, type SizedAsk } from "../queues/ask-shape.ts";
import { noteShortfall } from "../queues/queue-state.ts";
import type { GangRecord, Shortfall } from "../queues/records.ts";
import type { PoolAmounts } from "../usage/branch-use.ts";
import { allocationsOf, placeIn, runsOf } from "./planned-admission.ts";

/**
 * Grows a gang in the cluster where it runs. It grows to all members in one step. A gang of an elastic kind grows by as
 * many members as there is capacity for. Null if it cannot grow now.
 */
export function growGang(fleet: Fleet, gang: GangRecord): PlannedAdmission | null {
  const where = whereItGrows(fleet, gang);
  if (where === null) return null;
  const { cluster, live } = where;
  const { shape } = gang;
  const missing = addedMembers(live.members, shape.all.members);
  const grow = (count: number): SizedAsk | null => {
    const added = partOf(shape, firstOf(gang, missing, count));
    if (!isAllowed(fleet, { gang, cluster, added, live })) return null;
    return placeAdded(cluster.free, addedIn(cluster, added, live)) ? added : null;
  };
  const { mark } = cluster.free;
  const all = memberCount(missing);
  let added = grow(all);
  if (added === null && shape.ask.elastic) {
    const most = largest((count) => {
      const fits = grow(count) !== null;
      cluster.free.undo(mark);
      return fits;
    }, all);
    if (most > 0) added = grow(most);
  }
  return added === null ? null : take(fleet, { gang, cluster, added, live }, mark);
}

/** True if a gang can grow to all members now. Places nothing. */
export function canGrow(fleet: Fleet, gang: GangRecord): boolean {
  if (gang.shortfall?.cannotIn === fleet.growthVersion) return false;
  const where = whereItGrows(fleet, gang);
  if (where === null) return false;
  const shortfall = shortfallOf(gang, where);
  const { free, counts } = where.cluster;
  const isEnough = (fit: FitClass, count: number) => counts.isEnough(fit, count);
  const can =
    isAllowed(fleet, { gang, added: shortfall.added, ...where }) &&
    shortfall.pods.groups.every(({ fit, count }) => isEnough(fit, count)) &&
    fitAdded(free, shortfall.pods, isEnough);
  if (!can) shortfall.cannotIn = fleet.growthVersion;
  return can;
}

/** Asked once: a gang that runs with other members has another record. */
function shortfallOf(gang: GangRecord, { cluster, live }: Pick<Growth, "cluster" | "live">): Shortfall {
  // Its pods are by the levels of the cluster.
  if (gang.shortfall?.facts === cluster.facts) return gang.shortfall;
  const added = allMissing(gang, live);
  const lacks = { added, pods: addedIn(cluster, added, live), facts: cluster.facts, cannotIn: -1 };
  noteShortfall(gang, lacks);
  return lacks;
}

/** The pods of added members, with the nodes where the gang runs. */
function addedIn(cluster: ClusterState, added: SizedAsk, live: PlannedFrom) {
  const { flavorLabels, placement } = live;
  const runsOf = (role: string | null) => (placement?.runs ?? []).filter((run) => role === null || run.role === role);
  const nodesOf = (role: string | null) => runsOf(role).map(({ node }) => placement?.nodes[node] ?? "");
  const groups = groupsOf(added, cluster, flavorLabels);
  return { groups, together: togetherOf(added, cluster, flavorLabels), nodesOf };
}

function allMissing({ shape }: GangRecord, { members }: PlannedFrom): SizedAsk {
  return partOf(shape, addedMembers(members, shape.all.members));
}

/** The cluster in which a gang runs, if gangs may grow there. */
function whereItGrows(fleet: Fleet, { facts }: GangRecord): Pick<Growth, "cluster" | "live"> | null {
  const live = liveAdmission(facts);
  const cluster = fleet.clusters.get(live?.cluster ?? "");
  if (live === null || cluster === undefined || cluster.facts === null) return null;
  const { reachable, cordoned, retired = false } = cluster.facts;
  return reachable && !cordoned && !retired ? { cluster, live } : null;
}

type Growth = {
  readonly gang: GangRecord;
  readonly cluster: ClusterState;
  readonly added: SizedAsk;
  readonly live: PlannedFrom;
};

/** The amounts that all members would take which a running gang lacks. */
export function missingAmounts(gang: GangRecord, resources: readonly string[]): PoolAmounts {
  const live = liveAdmission(gang.facts);
  return live === null ? new Map() : amountsOf(allMissing(gang, live), live.flavors, resources);
}

function isAllowed(fleet: Fleet, { gang, added, live }: Growth): boolean {
  const { account, facts } = gang;
  for (const [pool, need] of amountsOf(added, live.flavors, fleet.resources)) {
    if (!fleet.quota.admits(account, pool, { need, priority: facts.priority })) return false;
  }
  return true;
}

/** `mark`: after it, the pods of the growth were placed. */
function take(fleet: Fleet, { gang, cluster, added, live }: Growth, mark: number): PlannedAdmission {
  const { facts, account } = gang;
  const allocations = allocationsOf(facts, amountsOf(added, live.flavors, fleet.resources));
  const pods = addedIn(cluster, added, live);
  for (const { pool, amount } of allocations) fleet.quota.charge(account, pool, amount);
  const planned: PlannedAdmission = {
    kind: "grow",
    jobUid: facts.uid,
    askHash: facts.askHash,
    generation: facts.generation,
    admission: live.number,
    ...placeIn(cluster),
    members: withAdded(live.members, added),
    flavors: live.flavors,
    flavorLabels: live.flavorLabels,
    runs: runsOf(cluster, mark, { ...pods, from: live.members }),
    allocations,
  };
  cluster.planned += 1;
  return planned;
}

/**
 * The most members, fewer than `tooMany`, that fit; 0 if none do. If a number of members fits, every smaller one does.
 */
function largest(fits: (count: number) => boolean, tooMany: number): number {
  let [least, most] = [1, tooMany - 1];
  let best = 0;
  while (least <= most) {
    const count = best === 0 ? least : Math.floor((least + most) / 2);
    if (!fits(count)) most = count - 1;
    else [least, best] = [count + 1, count];
  }
  return best;
}

/** The first `count` of the missing members, in the order in which members are admitted. */
function firstOf({ shape }: GangRecord, missing: MemberCounts, count: number): MemberCounts {
  const first: Record<string, number> = {};
  let left = count;
  for (const { role } of shape.ask.roles) {
    const more = Math.min(left, missing[role] ?? 0);
    first[role] = more;
    left -= more;
  }
  return first;
}

function withAdded(members: MemberCounts, { ask, members: added }: SizedAsk): MemberCounts {
  return Object.fromEntries(ask.roles.map(({ role }) => [role, (members[role] ?? 0) + (added[role] ?? 0)]));
}
