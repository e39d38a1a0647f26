/**
 * The records of the planner, which name each other: gangs, classes of alike gangs, queues, requests, running gangs.
 * Only this folder writes those of gangs, gang classes and queues, by the transitions in `class-state.ts` and
 * `queue-state.ts`.
 */

import type { FlavorLabels } from "../../job/flavor-labels.ts";
import type { ChargedAllocation } from "../../quota/decide.ts";
import type { ClusterState, LiveMembers } from "../capacity/cluster-state.ts";
import type { FitClass } from "../capacity/fit-classes.ts";
import type { PlacedPod } from "../capacity/unseen-pods.ts";
import type { AddedPods } from "../domains/place-added.ts";
import type { WishingGroup } from "../domains/place-gang.ts";
import type { Together } from "../domains/wish.ts";
import type { FlavorChoice } from "../model/flavors.ts";
import type { MemberCounts } from "../model/gang.ts";
import type { LimitedTenant } from "../model/limited-tenant.ts";
import type { NodeLabels } from "../model/node-labels.ts";
import type { PlanGang, PlannedFrom } from "../model/plan-gang.ts";
import type { QueueStop } from "../model/queue-stop.ts";
import type { ClusterFacts, PlanQueue } from "../model/snapshot.ts";
import type { PoolAmounts } from "../usage/branch-use.ts";
import type { Account, QuotaRise } from "../usage/quota-levels.ts";
import type { QuotaBlock } from "../usage/quota-state.ts";
import type { RunningGang, Victim } from "../victims/running-gang.ts";
import type { WaitingGangs } from "../victims/waiting-gangs.ts";
import type { AgeingInBands } from "./ageing.ts";
import type { AskGroup, AskShape, SizedAsk } from "./ask-shape.ts";
import type { ClassRefusal, ClusterBlock } from "./refusals.ts";

type Writable<V> = V extends readonly (infer I extends GangRecord | GangClass | LevelList | Request)[]
  ? I[]
  : V extends ReadonlyMap<infer K, infer I>
    ? Map<K, I>
    : V extends ReadonlySet<infer I>
      ? Set<I>
      : V;

/** A record of a gang, a gang class or a queue as this folder writes it. */
export type Written<T> = { -readonly [K in keyof T]: Writable<T[K]> };

/** Opens a record for a change. Only this folder may call it. */
export function written<T extends GangRecord | GangClass | GangQueue>(record: T): Written<T> {
  return record as Written<T>;
}

/** The members that a running gang lacks, and their pods. */
export type Shortfall = {
  readonly added: SizedAsk;
  readonly pods: AddedPods;
  /** The record of the cluster that the pods are for. */
  readonly facts: ClusterFacts | null;
  /** The version of `Fleet.growthVersion` in which it cannot grow by all of them. */
  cannotIn: number;
};

/** A gang, and the place that it has in its queue. */
export type GangRecord = {
  readonly facts: PlanGang;
  readonly gangQueue: GangQueue;
  readonly shape: AskShape;
  readonly account: Account;
  /** Null: the gang does not wait, or waits for itself. */
  readonly gangClass: GangClass | null;
  /** The key of the reason that was last reported for the gang. 0: none was reported. */
  readonly reported: number;
  /** The members that it lacks if it runs with fewer than its job has. Null: not asked for yet. */
  readonly shortfall: Shortfall | null;
};

/**
 * Waiting gangs that a plan cannot tell apart but by their age. They have one queue, project, namespace, ask and
 * priority, and older admissions of theirs have not left the same clusters. If the first does not fit, none does. Where
 * gangs age, those that waited before form gang classes of their own: in every gang class the older one has waited for
 * longer.
 */
export type GangClass = {
  readonly key: string;
  readonly queue: string;
  readonly namespace: string;
  readonly project: string;
  readonly gangQueue: GangQueue;
  readonly shape: AskShape;
  readonly account: Account;
  readonly priority: number;
  readonly excludedClusters: readonly string[];
  /** The tenant whose limit of running jobs kept its gangs waiting when the last round looked. Null: none did. */
  readonly full: LimitedTenant | null;
  /** The oldest first. */
  readonly gangs: readonly GangRecord[];
  /** The place of the first gang that the round has not admitted. */
  readonly at: number;
  /** True: the next round looks at its first gang. */
  readonly active: boolean;
  /** True: it is among the `active` ones of its queue. */
  readonly isInActive: boolean;
  /**
   * Why each round looks at it: its lists do not hold everything that can change its refusal. `tokens`: it may become
   * the gang in the pools' waiting lines, or leaves capacity for that one. `victims`: once any fact changes, or in
   * time, others may be preempted for it, or a reservation keep it out no more. Null: its lists hold everything.
   */
  readonly reevaluated: "tokens" | "victims" | "always" | null;
  /** True: if it may preempt others, it looks for them when a round looks at it. */
  readonly maySearch: boolean;
  /** How often the search queue had requested all gang classes to look when this one looked last. */
  readonly searchedUpTo: number;
  readonly refusal: ClassRefusal | null;
  /** The key of the reason that was last reported for its gangs. */
  readonly reported: number;
  /** The requests for whose capacity it waits. */
  readonly requests: readonly Request[];
  /** The quotas that kept it refused, and the lists of those that wait for quota with it. */
  readonly closedBy: readonly QuotaBlock[];
  readonly waitsIn: readonly LevelList[];
  /** The alternatives for its one flavored resource. Null: it has not just one. Undefined: not looked up yet. */
  readonly options: readonly ClassOption[] | null | undefined;
};

/** The gangs of one queue. */
export type GangQueue = {
  readonly name: string;
  readonly classes: ReadonlyMap<string, GangClass>;
  /** The gang classes in the order of their first gangs. Null: not known. */
  readonly order: readonly GangClass[] | null;
  /**
   * The gang classes that may get reservations. Null: not known since gangs came or went, or gang classes were looked
   * at.
   */
  readonly waitedLong: WaitedLong | null;
  /** True: some of its gang classes request no flavored resource. Null: not known since gang classes came. */
  readonly hasUnflavored: boolean | null;
  /**
   * Those that are active, some that are not active any more, and some for which something may have come; each once.
   */
  readonly active: readonly GangClass[];
  /** How many of these were active when a round looked at them last. */
  readonly activeBefore: number;
  /** How many of its gang classes are re-evaluated. */
  readonly reevaluated: number;
  /** Gangs in no class: nominees, and gangs that are suspended, back off, drain or await a result. */
  readonly held: ReadonlySet<GangRecord>;
  /** Gangs that run with fewer members than their jobs have, in their order; and elastic ones. */
  readonly growing: readonly GangRecord[];
  readonly stretching: readonly GangRecord[];
  /** Gangs with a live admission. */
  readonly running: ReadonlySet<GangRecord>;
  /** The same as searches for victims see them. Null: not known since one came or went. */
  readonly runningAdmissions: QueueAdmissions | null;
  /** The reason for which the queue is stopped. Null: its gangs are admitted. */
  readonly stop: QueueStop | null;
  /** How the gangs age that wait. Null: they do not. */
  readonly ageing: AgeingInBands | null;
  /** While the order of its gang classes stays as it is. Null: no time changes it. */
  readonly rankedMs: { readonly from: number; readonly until: number } | null;
  /** The first gang class, if the queue is strict and the gang class was refused. Null: not known, or it was not. */
  readonly head: GangClass | null;
  /** The first gang with a reservation, if the queue is strict. Others wait behind it, unless they may overtake it. */
  readonly reserved: GangRecord | null;
  /** The gang behind which the others wait, as was last reported. */
  readonly reportedHead: string;
  /** The queue that ran as many jobs as it may when the last round ended: this one, or one above it. Null: none did. */
  readonly full: string | null;
  /** True: a round skipped its gang classes because of that. What they wait for may have come. */
  readonly skipped: boolean;
  /** How many gangs wait, those that wait for themselves included. */
  readonly waiting: number;
};

/**
 * The first refused gang classes of a queue whose gangs have waited long enough: it stays so from one time until
 * another.
 */
export type WaitedLong = { readonly classes: readonly GangClass[]; readonly fromMs: number; readonly nextMs: number };

/**
 * Members of an ask with one choice of flavors, and the gang classes that wait for capacity for them. Gangs with the
 * same request fit in the same clusters.
 */
export type Request = WaitList & {
  /** Tells requests apart. */
  readonly id: number;
  /** The reservations that are not charged when it is asked, by `Reserved.excluded`. */
  readonly excluded: string;
  /** The same request beside all reservations. Null: it is that one. */
  readonly base: Request | null;
  readonly sized: SizedAsk;
  readonly choice: FlavorChoice;
  /** The resource by which the fullest cluster is chosen, and the amount of it that the request takes. */
  readonly resource: string;
  /** The replica type that chooses it. Null: types have the same flavors of the resource, and all of them count. */
  readonly leader: string | null;
  readonly demand: number;
  /** The amounts that it takes of each pool. Null: not asked for yet. */
  requested: PoolAmounts | null;
  readonly tries: Map<ClusterState, CapacityTry>;
  /** It in every cluster that takes its ask, by name, and the version of the clusters that this is for. */
  all: { readonly version: number; readonly tries: readonly CapacityTry[] };
  /**
   * The clusters that may have capacity for it again since it was closed. Null: it was never closed, or not for long.
   */
  reopened: CapacityTry[] | null;
  /**
   * The cluster that had capacity for it last, which is asked first. While it is a candidate, each class alone fits
   * there since rounds looked whether it does. Null: none is known.
   */
  lastTry: CapacityTry | null;
  /** Gang classes that wait for quota for it, and that are woken by capacity once they have the quota. */
  readonly lists: Set<LevelList>;
  /**
   * The version of the clusters for which too few pods of some class fit in each of them, so that nobody's request like
   * this fits; -1 once there may be capacity again.
   */
  closedFor: number;
};

/** Pods of a request that are of one class in a cluster, and how many of them each replica type has. */
export type TryGroup = WishingGroup & Pick<AskGroup, "roles">;

/** A flavor for which a cluster has no nodes, or a level that it does not have. */
export type LackOfCluster = { readonly kind: "flavor" | "level"; readonly name: string };

/** A request in one cluster. */
export type CapacityTry = {
  readonly request: Request;
  readonly cluster: ClusterState;
  /** The record of the cluster that it was made for. */
  readonly facts: ClusterFacts;
  /** What the cluster lacks, so that it never takes the request as both are. Null: nothing. */
  readonly lacks: LackOfCluster | null;
  readonly flavorLabels: FlavorLabels;
  /** Those of all flavors together: the nodes by which the fullest cluster is chosen. */
  readonly labels: NodeLabels;
  readonly labelsKey: string;
  readonly groups: readonly TryGroup[];
  /** What is wished of all pods together. Null: nothing. */
  readonly together: Together | null;
  /** The round in which it was refused last, and how many admissions that round had planned in the cluster then. */
  refusedIn: number;
  refusedAfter: number;
  /** The state of the capacity in which the cluster's domains refused it last; -1: they did not. */
  refusedState: number;
  /**
   * The class of which too few pods fit. Null: each class alone fits, so the refusal holds for what is free now only.
   */
  short: FitClass | null;
  /** True while it waits for pods of a class, so that the request's gang classes are woken once they fit. */
  watched: boolean;
  /** The classes under which it is listed there. */
  readonly listed: FitClass[];
  /** Whether it fits the empty cluster, for the version of the empty nodes. */
  everVersion: number;
  ever: boolean;
  /** The refusal that was reported last. */
  block: ClusterBlock | null;
};

/** The gang classes that need the same capacity at a level. */
export type LevelList = WaitList & {
  readonly level: number;
  readonly need: number;
  /**
   * They also need capacity for this request: while it is closed, capacity at the level is in vain. Null: none is
   * known.
   */
  readonly request: Request | null;
};

/** The gang classes that wait for one thing. */
export type WaitList = {
  readonly waiting: Set<GangClass>;
  /** True: it may have come, and gang classes that wait for it were not looked at since. */
  isCandidate: boolean;
};

/** A flavor for the fewest members of a class's gang, and what keeps it shut: capacity, quota, or both. */
export type ClassOption = {
  readonly flavor: string;
  readonly need: number;
  readonly request: Request;
  /** True: the gang class waits for capacity for the request. */
  waits: boolean;
  /** The level of a quota for which the gang class waits. Null: none. */
  block: QuotaBlock | null;
};

/** An admission of a gang that uses tokens and capacity. */
export type RunningAdmission = RunningGang & {
  readonly gang: GangRecord;
  /** With the members that count here. */
  readonly admission: PlannedFrom;
  readonly members: LiveMembers;
  /** The members that an elastic gang keeps without its growth, if this is one of both. Null: it is the whole gang. */
  readonly keeps: MemberCounts | null;
};

export type RunningVictim = Victim & { readonly gang: RunningAdmission };

/** A gang that stays, made of one record of it: with its growth as one of its own, and whole. */
export type GangAdmissions = {
  readonly facts: PlanGang;
  readonly parts: readonly RunningAdmission[];
  readonly whole: RunningAdmission | null;
};

/** The gangs of a queue that stay. */
export type QueueAdmissions = {
  readonly parts: readonly RunningAdmission[];
  readonly wholes: readonly RunningAdmission[];
  /** Those of `wholes` whose end is known, or that may be taken back at any time. */
  readonly ending: readonly RunningAdmission[];
  /** The pools that they use. */
  readonly pools: ReadonlySet<string>;
  /** Those of `parts` by cluster. Null: not asked for yet. */
  byCluster: ReadonlyMap<string | null, readonly RunningAdmission[]> | null;
};

export type PlacedPods = { readonly slot: number; readonly fit: FitClass; readonly pods: number };

/** The capacity and the quota that are kept for one gang until it is admitted. */
export type ReservedCapacity = {
  readonly gang: GangRecord;
  readonly requested: PoolAmounts;
  readonly cluster: ClusterState;
  readonly placed: readonly PlacedPods[];
  /**
   * The pods of the gangs that it waits for whose places it gets, by `inheritanceKey`. The nodes count these places
   * once, as those of the pods.
   */
  readonly inherited: ReadonlyMap<string, readonly PlacedPod[]>;
  /** Empty: it keeps no quota. Null: all that it requests is charged. */
  readonly rise: QuotaRise | null;
  /** When the gangs that it waits for have ended at the latest. Infinite: nobody knows. */
  readonly startMs: number;
  /** False: it waits only for gangs that leave or that it may take back, so that it is admitted soon. */
  readonly isFar: boolean;
  /** True: it is not charged at the moment. */
  excluded: boolean;
};

/** An amount of a pool and its holder: a job as `namespace/name`, a caller as `caller name`. */
export type Holding = ChargedAllocation & { readonly holder: string };

/** The amounts of a shape by the flavors of a queue, while its quotas and the clusters stay as they are. */
export type ShapeChoices = {
  readonly queue: PlanQueue;
  readonly clustersVersion: number;
  readonly choices: WaitingGangs["choices"];
};
