import { canonicalJson } from "../../../runtime/json.ts";
import { allNodeLabels, type FlavorLabels } from "../../job/flavor-labels.ts";
import type { NodeLabels } from "../fit.ts";
import type { FlavorChoice } from "../flavors.ts";
import { amountsByPool, demandFor, type SizedAsk, unitsOf } from "./ask-shape.ts";
import type { PoolAmounts } from "./branch-use.ts";
import type { ClusterFacts, ClusterState } from "./cluster-state.ts";
import type { NamedGroup } from "./find-blocked.ts";
import type { FitClass } from "./fit-classes.ts";
import type { WaitList } from "./hopeful-lists.ts";
import { type FitGroup, fitGroups, fitTogether } from "./place-all.ts";
import type { LevelList } from "./quota-waits.ts";
import type { ClusterBlock } from "./refused.ts";

/**
 * Members of an ask with one choice of flavors, and the lanes that wait for room for them. Gangs with the same request
 * fit in the same clusters.
 */
export type Request = WaitList & {
  /** Tells requests apart. */
  readonly id: number;
  /** The reservations that are not charged when it is asked, by `liftedKey`. */
  readonly lifted: string;
  /** The same request beside all reservations. Null: it is that one. */
  readonly base: Request | null;
  readonly sized: SizedAsk;
  readonly choice: FlavorChoice;
  /** The resource by which the fullest cluster is chosen, and the amount of it that the request takes. */
  readonly resource: string;
  readonly demand: number;
  /** The amounts that it takes of each pool. Null: not asked for yet. */
  wants: PoolAmounts | null;
  readonly tries: Map<ClusterState, RoomTry>;
  /** It in every cluster that takes its ask, by name, and the version of the clusters that this is for. */
  all: { readonly version: number; readonly rooms: readonly RoomTry[] };
  /** The clusters that may have room for it again since it was closed. Null: it was never closed, or not for long. */
  reopened: RoomTry[] | null;
  /**
   * The cluster that had room for it last, which is asked first. While it is hopeful, each class alone fits there since
   * rounds looked whether it does. Null: none is known.
   */
  lastRoom: RoomTry | null;
  /** Lanes that wait for quota for it, and that hear of room once they have the quota. */
  readonly lists: Set<LevelList>;
  /**
   * The version of the clusters for which too few pods of some class fit in each of them, so that nobody's request like
   * this fits; -1 once there may be room again.
   */
  closedFor: number;
};

/** A request in one cluster. */
export type RoomTry = {
  readonly request: Request;
  readonly cluster: ClusterState;
  /** The record of the cluster that it was made for. */
  readonly facts: ClusterFacts;
  /** The first flavor that the cluster lacks. Null: it lacks none. */
  readonly lacks: string | null;
  readonly flavorLabels: FlavorLabels;
  /** Those of all flavors together: the nodes by which the fullest cluster is chosen. */
  readonly labels: NodeLabels;
  readonly labelsKey: string;
  readonly groups: readonly FitGroup[];
  /** The round in which it was refused last, and how many admissions that round had planned in the cluster then. */
  refusedIn: number;
  refusedAfter: number;
  /** The class of which too few pods fit. Null: each class alone fits, so the refusal holds for this very room only. */
  short: FitClass | null;
  /** True while the cluster's watch wakes the request's lanes once the class fits. */
  watched: boolean;
  /** The classes under which that watch lists it. */
  readonly listed: FitClass[];
  /** Whether it fits the empty cluster, for the version of the empty nodes. */
  everVersion: number;
  ever: boolean;
  /** The refusal that was reported last. */
  block: ClusterBlock | null;
};

const NO_ROOMS: Request["all"] = { version: -1, rooms: [] };

/*
 * The objects are written out: one that is put together of others keeps most of its fields in another place in memory.
 */

export function newRequest(
  { id, lifted, base }: Pick<Request, "id" | "lifted" | "base">,
  sized: SizedAsk,
  choice: FlavorChoice,
): Request {
  const resource = Object.keys(choice)[0] ?? "cpu";
  return {
    waiting: new Set(),
    hopeful: false,
    closedFor: -1,
    reopened: null,
    lastRoom: null,
    lists: new Set(),
    lifted,
    all: NO_ROOMS,
    tries: new Map(),
    sized,
    choice,
    wants: null,
    resource,
    demand: demandFor(sized, resource),
    base,
    id,
  };
}

/** The amounts that a request takes of each pool. */
export function wantsOf(request: Request, resources: readonly string[]): PoolAmounts {
  request.wants ??= amountsByPool(unitsOf(request.sized, resources), request.choice);
  return request.wants;
}

/** True if some lane waits for room for a request, now or once it has the quota. */
export function isAwaited({ waiting, lists }: Request): boolean {
  if (waiting.size > 0) return true;
  for (const list of lists) if (list.waiting.size > 0) return true;
  return false;
}

/** The request in a cluster as it is registered now. */
export function tryIn(request: Request, cluster: ClusterState, facts: ClusterFacts): RoomTry {
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
export function tryRoom(room: RoomTry): { readonly fits: boolean; readonly short: FitClass | null } {
  const short = shortOf(room);
  return { fits: short === null && (room.groups.length === 1 || fitsTogether(room)), short };
}

function fitsTogether({ cluster, groups }: RoomTry): boolean {
  return fitTogether(cluster.room, groups, (fit, count) => cluster.watch.isEnough(fit, count));
}

/** The first class of which too few pods fit now, whatever the others take. Null: each one alone fits. */
export function shortOf({ cluster, groups }: RoomTry): FitClass | null {
  for (const { fit, count } of groups) if (!cluster.watch.isEnough(fit, count)) return fit;
  return null;
}

/** True if the request fits the cluster once nothing runs on it. */
export function fitsEmpty(room: RoomTry): boolean {
  const { cluster, groups } = room;
  if (room.everVersion === cluster.emptyVersion) return room.ever;
  room.ever = fitGroups(cluster.empty, groups);
  room.everVersion = cluster.emptyVersion;
  return room.ever;
}

/**
 * The node labels that flavors demand in a cluster, and the flavor that each comes from; or the first flavor that the
 * cluster lacks.
 */
export function labelsFor(facts: ClusterFacts, choice: FlavorChoice) {
  const flavorLabels: Record<string, NodeLabels> = {};
  const flavorOf: Record<string, string> = {};
  for (const [resource, name] of Object.entries(choice)) {
    const flavor = facts.flavors.find((known) => known.name === name && known.resource === resource);
    if (flavor === undefined) return { flavorLabels: {}, flavorOf: {}, lacks: name };
    flavorLabels[resource] = flavor.nodeLabels;
    for (const key of Object.keys(flavor.nodeLabels)) flavorOf[key] = name;
  }
  return { flavorLabels, flavorOf, lacks: null };
}

function newTry(request: Request, cluster: ClusterState, facts: ClusterFacts): RoomTry {
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
function askedIn({ sized, choice }: Request, cluster: ClusterState, facts: ClusterFacts) {
  const { flavorLabels, lacks } = labelsFor(facts, choice);
  const labels = allNodeLabels(flavorLabels);
  const groups = lacks === null ? groupsOf(sized, cluster, flavorLabels) : [];
  return { lacks, flavorLabels, labels, labelsKey: canonicalJson(labels), groups };
}

/** The pods of a request as classes of a cluster, on nodes with the labels that flavors demand. */
export function groupsOf(
  sized: SizedAsk,
  { room }: Pick<ClusterState, "room">,
  flavorLabels: FlavorLabels,
): readonly NamedGroup[] {
  return sized.groups.map(({ podClass, role, count }) => ({ fit: room.fits.of(podClass, flavorLabels), role, count }));
}
