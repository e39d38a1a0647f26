import { canonicalJson } from "../../../runtime/json.ts";
import { allNodeLabels, type FlavorLabels, isByRole, ofRole, partsOf } from "../../job/flavor-labels.ts";
import type { ClusterState } from "../capacity/cluster-state.ts";
import type { NamedGroup } from "../capacity/find-blocked.ts";
import type { FitClass, FitClasses } from "../capacity/fit-classes.ts";
import { fitGroups, fitTogether } from "../capacity/place-all.ts";
import type { FlavorChoice } from "../model/flavors.ts";
import type { NodeLabels } from "../model/node-labels.ts";
import type { ClusterFacts } from "../model/snapshot.ts";
import { amountsOf, demandFor, groupsByRole, type SizedAsk } from "../queues/ask-shape.ts";
import type { CapacityTry, Request, TryGroup } from "../queues/records.ts";
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
  return { fits: short === null && (tried.groups.length === 1 || fitsTogether(tried)), short };
}

function fitsTogether({ cluster, groups }: CapacityTry): boolean {
  return fitTogether(cluster.free, groups, (fit, count) => cluster.counts.isEnough(fit, count));
}

/** The first class of which too few pods fit now, whatever the others take. Null: each one alone fits. */
export function shortOf({ cluster, groups }: CapacityTry): FitClass | null {
  for (const { fit, count } of groups) if (!cluster.counts.isEnough(fit, count)) return fit;
  return null;
}

/** True if the request fits the cluster once nothing runs on it. */
export function fitsEmpty(tried: CapacityTry): boolean {
  const { cluster, groups } = tried;
  if (tried.everVersion === cluster.emptyVersion) return tried.ever;
  tried.ever = fitGroups(cluster.empty, groups);
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
    cluster,
    refusedIn: -1,
    refusedAfter: -1,
    missingFlavor: asked.missingFlavor,
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
  const groups = missingFlavor === null ? groupsOf(sized, cluster, flavorLabels) : [];
  return { missingFlavor, flavorLabels, labels, labelsKey: canonicalJson(labels), groups };
}

/** The pods of a request as classes of a cluster, on nodes with the labels that flavors demand. */
export function groupsOf(
  sized: SizedAsk,
  { free }: Pick<ClusterState, "free">,
  flavorLabels: FlavorLabels,
): readonly (NamedGroup & TryGroup)[] {
  if (isByRole(flavorLabels)) return groupsOfRoles(sized, free.fits, flavorLabels);
  return sized.groups.map(({ podClass, role, count, roles }) => {
    return { fit: free.fits.of(podClass, flavorLabels), role, count, roles };
  });
}

/** The same if replica types have different flavors. Those of one class are one group. */
function groupsOfRoles(
  sized: SizedAsk,
  fits: FitClasses,
  flavorLabels: FlavorLabels,
): readonly (NamedGroup & TryGroup)[] {
  const merged = new Map<FitClass, NamedGroup & TryGroup>();
  for (const { podClass, role, count, roles } of groupsByRole(sized)) {
    const fit = fits.of(podClass, ofRole(flavorLabels, role));
    const known = merged.get(fit);
    const both = { fit, role: known?.role ?? role, count: (known?.count ?? 0) + count };
    merged.set(fit, { ...both, roles: [...(known?.roles ?? []), ...roles] });
  }
  return [...merged.values()];
}
