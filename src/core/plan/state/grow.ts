import { liveAdmission } from "../../job/job.ts";
import { memberCount } from "../../job/roles.ts";
import type { FlavorChoice } from "../flavors.ts";
import { addedMembers, type MemberCounts } from "../gang.ts";
import type { PlanGang, PlannedFrom } from "../plan-gang.ts";
import type { PlannedAdmission, PlannedAllocation } from "../plan-types.ts";
import { amountsByPool, partOf, type SizedAsk, unitsOf } from "./ask-shape.ts";
import type { PoolAmounts } from "./branch-use.ts";
import type { ClusterState } from "./cluster-state.ts";
import type { FitClass } from "./fit-classes.ts";
import type { Entry } from "./gang-lines.ts";
import { type FitGroup, fitTogether, placeAll } from "./place-all.ts";
import { groupsOf } from "./requests.ts";
import type { Parts } from "./state-parts.ts";

/**
 * Grows a gang in the cluster where it runs. It grows to all members in one step. A gang of an elastic kind grows by as
 * many members as there is room for. Null if it cannot grow now.
 */
export function growEntry(parts: Parts, entry: Entry): PlannedAdmission | null {
  const where = whereItGrows(parts, entry);
  if (where === null) return null;
  const { cluster, live } = where;
  const { shape } = entry;
  const missing = addedMembers(live.members, shape.all.members);
  const grow = (count: number): SizedAsk | null => {
    const added = partOf(shape, firstOf(entry, missing, count));
    return place(parts, { entry, cluster, added, live }) ? added : null;
  };
  const { mark } = cluster.room;
  const all = memberCount(missing);
  let added = grow(all);
  if (added === null && shape.ask.elastic) {
    const most = largest((count) => {
      const fits = grow(count) !== null;
      cluster.room.undo(mark);
      return fits;
    }, all);
    if (most > 0) added = grow(most);
  }
  return added === null ? null : take(parts, { entry, cluster, added, live });
}

/** True if a gang can grow to all members now. Places nothing. */
export function canGrow(parts: Parts, entry: Entry): boolean {
  if (entry.lacks?.cannotIn === parts.growthVersion) return false;
  const where = whereItGrows(parts, entry);
  if (where === null) return false;
  const lacks = lackingOf(entry, where);
  const { room, watch } = where.cluster;
  const isEnough = (fit: FitClass, count: number) => watch.isEnough(fit, count);
  const can =
    isAllowed(parts, { entry, added: lacks.added, ...where }) &&
    lacks.groups.every(({ fit, count }) => isEnough(fit, count)) &&
    fitTogether(room, lacks.groups, isEnough);
  if (!can) lacks.cannotIn = parts.growthVersion;
  return can;
}

/** The members that a running gang lacks, and their pods as classes. */
export type Lacking = {
  readonly added: SizedAsk;
  readonly groups: readonly FitGroup[];
  /** The version of `Parts.growthVersion` in which it cannot grow by all of them. */
  cannotIn: number;
};

/** Asked once: a gang that runs with other members has another entry. */
function lackingOf(entry: Entry, { cluster, live }: Pick<Growth, "cluster" | "live">): Lacking {
  if (entry.lacks !== null) return entry.lacks;
  const added = allMissing(entry, live);
  entry.lacks = { added, groups: groupsOf(added, cluster, live.flavorLabels), cannotIn: -1 };
  return entry.lacks;
}

function allMissing({ shape }: Entry, { members }: PlannedFrom): SizedAsk {
  return partOf(shape, addedMembers(members, shape.all.members));
}

/** The cluster in which a gang runs, if gangs may grow there. */
function whereItGrows(parts: Parts, { gang }: Entry): Pick<Growth, "cluster" | "live"> | null {
  const live = liveAdmission(gang);
  const cluster = parts.clusters.get(live?.cluster ?? "");
  if (live === null || cluster === undefined || cluster.facts === null) return null;
  const { reachable, cordoned, retired = false } = cluster.facts;
  return reachable && !cordoned && !retired ? { cluster, live } : null;
}

type Growth = {
  readonly entry: Entry;
  readonly cluster: ClusterState;
  readonly added: SizedAsk;
  readonly live: PlannedFrom;
};

/** The allocations of some units of flavored resources, one for each pool. */
export function allocationsOf(
  { project, namespace, queue }: PlanGang,
  units: Readonly<Record<string, number>>,
  choice: FlavorChoice,
): readonly PlannedAllocation[] {
  return [...amountsByPool(units, choice)].map(([pool, amount]) => ({ pool, amount, project, namespace, queue }));
}

/** The amounts that all members would take which a running gang lacks. */
export function missingAmounts(entry: Entry, resources: readonly string[]): PoolAmounts {
  const live = liveAdmission(entry.gang);
  return live === null ? new Map() : amountsByPool(unitsOf(allMissing(entry, live), resources), live.flavors);
}

/** The cluster of an admission or a growth, and the value of its counter when that is recorded in the plan's order. */
export function placeIn({ name, facts, planned }: ClusterState) {
  const { simulated = false, admissionCounter = 0 } = facts ?? {};
  return { cluster: name, ...(simulated ? { simulated } : {}), admissionCounter: admissionCounter + planned };
}

/** Places the added members where quotas allow them. */
function place(parts: Parts, growth: Growth): boolean {
  return (
    isAllowed(parts, growth) &&
    placeAll(growth.cluster.room, groupsOf(growth.added, growth.cluster, growth.live.flavorLabels)).all
  );
}

function isAllowed(parts: Parts, { entry, added, live }: Growth): boolean {
  const { account, gang } = entry;
  const units = unitsOf(added, parts.resources);
  for (const resource in units) {
    const pool = live.flavors[resource] ?? "";
    const need = units[resource] ?? 0;
    if (!parts.quota.admits(account, pool, { need, priority: gang.priority })) return false;
  }
  return true;
}

function take(parts: Parts, { entry, cluster, added, live }: Growth): PlannedAdmission {
  const { gang, account } = entry;
  const allocations = allocationsOf(gang, unitsOf(added, parts.resources), live.flavors);
  for (const { pool, amount } of allocations) parts.quota.charge(account, pool, amount);
  const planned: PlannedAdmission = {
    kind: "grow",
    jobUid: gang.uid,
    askHash: gang.askHash,
    generation: gang.generation,
    admission: live.number,
    ...placeIn(cluster),
    members: withAdded(live.members, added),
    flavors: live.flavors,
    flavorLabels: live.flavorLabels,
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
function firstOf({ shape }: Entry, missing: MemberCounts, count: number): MemberCounts {
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
