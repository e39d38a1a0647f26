import { canonicalJson } from "../../../runtime/json.ts";
import { allNodeLabels, type FlavorLabels, isByRole, ofRole, partsOf } from "../../job/flavor-labels.ts";
import type { ClusterState } from "../capacity/cluster-state.ts";
import type { NamedGroup } from "../capacity/find-blocked.ts";
import type { FitClass } from "../capacity/fit-classes.ts";
import type { FreeCapacity } from "../capacity/free-capacity.ts";
import { fitGroups } from "../capacity/place-all.ts";
import { fitGang, fitGangTogether, merged, placeGang, wishesForDomains } from "../domains/place-gang.ts";
import { missingLevel, type Together, wishIn } from "../domains/wish.ts";
import type { FlavorChoice } from "../model/flavors.ts";
import type { NodeLabels } from "../model/node-labels.ts";
import type { ClusterFacts } from "../model/snapshot.ts";
import type { Topology } from "../model/topology.ts";
import { type AskGroup, amountsOf, demandFor, groupsByRole, type SizedAsk } from "../queues/ask-shape.ts";
import type { CapacityTry, LackOfCluster, Request, TryGroup } from "../queues/records.ts";
import type { PoolAmounts } from "../usage/branch-use.ts";
import { type FlavorsApart, flavorsApart } from "./flavors-apart.ts";

const NO_TRIES: Request["all"] = { version: -1, tries: [] };

/*
 * The objects are written out: one that is put together of others keeps most of its fields in another place in memory.
 */

export function newRequest(
  { id, excluded, base }: Pick<Request, "id" | "excluded" | "base">,
  sized: SizedAsk,
  choice: FlavorChoice,
): Request {
  const { resource, role, demand } = leadingOf(sized, choice);
  return {
    waiting: new Set(),
    isCandidate: false,
    closedFor: -1,
    reopened: null,
    lastTry: null,
    lists: new Set(),
    excluded,
    all: NO_TRIES,
    tries: new Map(),
    sized,
    choice,
    requested: null,
    resource,
    leader: role,
    demand,
    base,
    id,
  };
}

/**
 * The first resource of a choice, or the processors. If replica types have different flavors of it, those of the type
 * that requests most of it count.
 */
function leadingOf(sized: SizedAsk, choice: FlavorChoice) {
  const { resource, role } = partsOf(Object.keys(choice)[0] ?? "cpu");
  if (role === null) return { resource, role, demand: demandFor(sized, resource) };
  const all = groupsByRole(sized).map((group) => {
    return { resource, role: group.role, demand: demandFor({ groups: [group] }, resource) };
  });
  return all.reduce((most, one) => (one.demand > most.demand ? one : most), { resource, role, demand: 0 });
}

/** The amounts that a request takes of each pool. */
export function requestsOf(request: Request, resources: readonly string[]): PoolAmounts {
  request.requested ??= amountsOf(request.sized, request.choice, resources);
  return request.requested;
}

/** The request in a cluster as it is registered now. */
export function tryIn(request: Request, cluster: ClusterState, facts: ClusterFacts): CapacityTry {
  const known = request.tries.get(cluster);
  if (known !== undefined && known.facts === facts) return known;
  const made = newTry(request, cluster, facts);
  request.tries.set(cluster, made);
  return made;
}

/**
 * Whether a request fits in its cluster now. Places nothing. `short` is a class of which too few pods fit, whatever the
 * others take.
 */
export function tryCapacity(tried: CapacityTry): { readonly fits: boolean; readonly short: FitClass | null } {
  const short = shortOf(tried);
  return { fits: short === null && fitsTogether(tried), short };
}

function fitsTogether(tried: CapacityTry): boolean {
  const { cluster } = tried;
  if (isRefusedByDomains(tried)) return false;
  const fits = fitGangTogether(cluster.free, tried, (fit, count) => cluster.counts.isEnough(fit, count));
  if (!fits) noteRefusedByDomains(tried);
  return fits;
}

/** Places a request in its cluster, or nothing of it. */
export function placeTried(tried: CapacityTry): boolean {
  if (isRefusedByDomains(tried)) return false;
  const { all } = placeGang(tried.cluster.free, tried);
  if (!all) noteRefusedByDomains(tried);
  return all;
}

/** True if the domains of the cluster have refused it, and its capacity is what it was then. */
function isRefusedByDomains({ cluster, refusedState }: CapacityTry): boolean {
  return refusedState === cluster.free.state;
}

function noteRefusedByDomains(tried: CapacityTry): void {
  if (wishesForDomains(tried)) tried.refusedState = tried.cluster.free.state;
}

/** The first class of which too few pods fit now, whatever the others take. Null: each one alone fits. */
export function shortOf({ cluster, groups }: CapacityTry): FitClass | null {
  for (const { fit, count } of groups) if (!cluster.counts.isEnough(fit, count)) return fit;
  return null;
}

/** True if the request fits the cluster once nothing runs on it. */
export function fitsEmpty(tried: CapacityTry): boolean {
  const { cluster } = tried;
  if (tried.everVersion === cluster.emptyVersion) return tried.ever;
  tried.ever = fitGang(cluster.empty, tried);
  tried.everVersion = cluster.emptyVersion;
  return tried.ever;
}

/** The node labels that flavors demand in a cluster, or the first flavor that the cluster lacks. */
export function labelsFor(facts: ClusterFacts, choice: FlavorChoice, sized: SizedAsk): FlavorNodes {
  const flavorLabels: Record<string, NodeLabels> = {};
  for (const [key, name] of Object.entries(choice)) {
    const { resource } = partsOf(key);
    const flavor = facts.flavors.find((known) => known.name === name && known.resource === resource);
    if (flavor === undefined) return { flavorLabels: {}, missingFlavor: name, apart: null };
    flavorLabels[key] = flavor.nodeLabels;
  }
  const apart = flavorsApart(isByRole(choice) ? groupsByRole(sized) : sized.groups, choice, flavorLabels);
  return { flavorLabels, missingFlavor: apart?.flavors[1].name ?? null, apart };
}

/** The nodes that a choice of flavors demands in a cluster. */
type FlavorNodes = {
  readonly flavorLabels: FlavorLabels;
  /** A flavor for which the cluster has no nodes. Null: it has nodes for each, as far as their labels say. */
  readonly missingFlavor: string | null;
  /** Null: the cluster has a flavor of that name for none of its nodes. */
  readonly apart: FlavorsApart | null;
};

function newTry(request: Request, cluster: ClusterState, facts: ClusterFacts): CapacityTry {
  const { base } = request;
  const asked = base === null ? askedIn(request, cluster, facts) : tryIn(base, cluster, facts);
  return {
    request,
    watched: false,
    short: null,
    groups: asked.groups,
    together: asked.together,
    cluster,
    refusedIn: -1,
    refusedAfter: -1,
    refusedState: -1,
    lacks: asked.lacks,
    listed: [],
    facts,
    flavorLabels: asked.flavorLabels,
    labels: asked.labels,
    labelsKey: asked.labelsKey,
    block: null,
    everVersion: -1,
    ever: false,
  };
}

/** What a request asks for in a cluster. */
function askedIn({ sized, choice, leader }: Request, cluster: ClusterState, facts: ClusterFacts) {
  const { flavorLabels, missingFlavor } = labelsFor(facts, choice, sized);
  const labels = allNodeLabels(leader === null ? flavorLabels : ofRole(flavorLabels, leader));
  const of = { flavorLabels, labels, labelsKey: canonicalJson(labels) };
  const lacks = missingFlavor === null ? lackOfLevel(sized, cluster, flavorLabels) : flavorLack(missingFlavor);
  if (lacks !== null) return { ...of, lacks, groups: [], together: null };
  return {
    ...of,
    lacks,
    groups: groupsOf(sized, cluster, flavorLabels),
    together: togetherOf(sized, cluster, flavorLabels),
  };
}

function flavorLack(name: string): LackOfCluster {
  return { kind: "flavor", name };
}

/** Why a cluster refuses a request that fits nowhere on its nodes now. */
export function reasonOf(
  tried: CapacityTry,
): "NoSuchFlavor" | "NoSuchLevel" | "TooLarge" | "DomainFull" | "NoCapacity" {
  if (tried.lacks !== null) return tried.lacks.kind === "flavor" ? "NoSuchFlavor" : "NoSuchLevel";
  if (!fitsEmpty(tried)) return "TooLarge";
  const { cluster, groups } = tried;
  const isByWish = wishesForDomains(tried) && shortOf(tried) === null && fitGroups(cluster.free, merged(groups));
  return isByWish ? "DomainFull" : "NoCapacity";
}

/** The first level that a gang wishes for and a cluster does not have. Null: it has all. */
export function lackOfLevel(
  sized: SizedAsk,
  { free }: Pick<ClusterState, "free">,
  flavorLabels: FlavorLabels,
): LackOfCluster | null {
  const { topology } = sized.ask;
  for (const { podClass, role, wish } of sized.groups) {
    if (topology === undefined && wish === undefined) continue;
    const levels = topologyFor(free, free.fits.of(podClass, labelsOf(flavorLabels, role)));
    const missing = missingLevel(levels, topology ?? {}) ?? missingLevel(levels, wish ?? {});
    if (missing !== null) return { kind: "level", name: missing };
  }
  return null;
}

/** What a gang wishes for all its pods together, by the levels of a cluster that has them. Null: nothing. */
export function togetherOf(
  { ask }: SizedAsk,
  { free }: Pick<ClusterState, "free">,
  flavorLabels: FlavorLabels,
): Together | null {
  // Levels are those of its first replica type, whichever members are asked for.
  const [first] = ask.roles;
  const podClass = ask.podClasses[first?.podClass ?? -1];
  if (ask.topology === undefined || first === undefined || podClass === undefined) return null;
  const by = free.fits.of(podClass, labelsOf(flavorLabels, first.role));
  const { level, required } = wishIn(topologyFor(free, by), ask.topology);
  return level === null ? null : { by, level, required };
}

function labelsOf(flavorLabels: FlavorLabels, role: string): FlavorLabels {
  return isByRole(flavorLabels) ? ofRole(flavorLabels, role) : flavorLabels;
}

function topologyFor(free: FreeCapacity, fit: FitClass): Topology {
  return free.domainsFor(fit)?.topology ?? [];
}

/** The wish of a group, by the levels of a cluster that has them. */
function wishOf(free: FreeCapacity, fit: FitClass, { wish }: Pick<AskGroup, "wish">): Pick<TryGroup, "wish"> {
  return wish === undefined ? {} : { wish: wishIn(topologyFor(free, fit), wish) };
}

/** The pods of a request as classes of a cluster, on nodes with the labels that flavors demand. */
export function groupsOf(
  sized: SizedAsk,
  { free }: Pick<ClusterState, "free">,
  flavorLabels: FlavorLabels,
): readonly (NamedGroup & TryGroup)[] {
  if (isByRole(flavorLabels)) return groupsOfRoles(sized, free, flavorLabels);
  return sized.groups.map((group) => {
    const fit = free.fits.of(group.podClass, flavorLabels);
    return { fit, role: group.role, count: group.count, roles: group.roles, ...wishOf(free, fit, group) };
  });
}

/** The same if replica types have different flavors. Those of one class are one group. */
function groupsOfRoles(
  sized: SizedAsk,
  free: FreeCapacity,
  flavorLabels: FlavorLabels,
): readonly (NamedGroup & TryGroup)[] {
  const merged = new Map<FitClass | string, NamedGroup & TryGroup>();
  for (const group of groupsByRole(sized)) {
    const { podClass, role, count, roles } = group;
    const fit = free.fits.of(podClass, ofRole(flavorLabels, role));
    const key = group.wish === undefined ? fit : role;
    const known = merged.get(key);
    const both = { fit, role: known?.role ?? role, count: (known?.count ?? 0) + count };
    merged.set(key, { ...both, roles: [...(known?.roles ?? []), ...roles], ...wishOf(free, fit, group) });
  }
  return [...merged.values()];
}
