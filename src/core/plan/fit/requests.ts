import { canonicalJson } from "../../../runtime/json.ts";
import { allNodeLabels, type FlavorLabels } from "../../job/flavor-labels.ts";
import type { ClusterState } from "../capacity/cluster-state.ts";
import type { NamedGroup } from "../capacity/find-blocked.ts";
import type { FitClass } from "../capacity/fit-classes.ts";
import { fitGroups, fitTogether } from "../capacity/place-all.ts";
import type { FlavorChoice } from "../model/flavors.ts";
import type { NodeLabels } from "../model/node-labels.ts";
import type { ClusterFacts } from "../model/snapshot.ts";
import { amountsByPool, demandFor, type SizedAsk, unitsOf } from "../queues/ask-shape.ts";
import type { CapacityTry, Request } from "../queues/records.ts";
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
  const resource = Object.keys(choice)[0] ?? "cpu";
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
    demand: demandFor(sized, resource),
    base,
    id,
  };
}

/** The amounts that a request takes of each pool. */
export function requestsOf(request: Request, resources: readonly string[]): PoolAmounts {
  request.requested ??= amountsByPool(unitsOf(request.sized, resources), request.choice);
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

/**
 * The node labels that flavors demand in a cluster, and the flavor that each comes from; or the first flavor that the
 * cluster lacks.
 */
export function labelsFor(facts: ClusterFacts, choice: FlavorChoice, sized: SizedAsk): FlavorNodes {
  const flavorLabels: Record<string, NodeLabels> = {};
  const flavorOf: Record<string, string> = {};
  for (const [resource, name] of Object.entries(choice)) {
    const flavor = facts.flavors.find((known) => known.name === name && known.resource === resource);
    if (flavor === undefined) return { flavorLabels: {}, flavorOf: {}, missingFlavor: name, apart: null };
    flavorLabels[resource] = flavor.nodeLabels;
    for (const key of Object.keys(flavor.nodeLabels)) flavorOf[key] = name;
  }
  const apart = flavorsApart(sized.groups, choice, flavorLabels);
  return { flavorLabels, flavorOf, missingFlavor: apart?.flavors[1].name ?? null, apart };
}

/** The nodes that a choice of flavors demands in a cluster. */
type FlavorNodes = {
  readonly flavorLabels: FlavorLabels;
  /** The flavor that each demanded label comes from. */
  readonly flavorOf: Readonly<Record<string, string>>;
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
function askedIn({ sized, choice }: Request, cluster: ClusterState, facts: ClusterFacts) {
  const { flavorLabels, missingFlavor } = labelsFor(facts, choice, sized);
  const labels = allNodeLabels(flavorLabels);
  const groups = missingFlavor === null ? groupsOf(sized, cluster, flavorLabels) : [];
  return { missingFlavor, flavorLabels, labels, labelsKey: canonicalJson(labels), groups };
}

/** The pods of a request as classes of a cluster, on nodes with the labels that flavors demand. */
export function groupsOf(
  sized: SizedAsk,
  { free }: Pick<ClusterState, "free">,
  flavorLabels: FlavorLabels,
): readonly NamedGroup[] {
  return sized.groups.map(({ podClass, role, count }) => ({ fit: free.fits.of(podClass, flavorLabels), role, count }));
}
