import { compareText } from "../../../runtime/compare-text.ts";
import { canonicalJson } from "../../../runtime/json.ts";
import { type FlavorLabels, ofRole } from "../../job/flavor-labels.ts";
import type { Placement } from "../../job/placement/placement.ts";
import { readyNode } from "../../pods/node-match.ts";
import { podClassOf } from "../model/ask.ts";
import type { MemberCounts } from "../model/gang.ts";
import type { PlanGang, PlannedFrom } from "../model/plan-gang.ts";
import type { BoundMember, ClusterFacts, NodeCapacity, UnboundPod } from "../model/snapshot.ts";
import { ClassCounts } from "./class-counts.ts";
import { compareDemand } from "./fit.ts";
import type { FitClass, FitClasses } from "./fit-classes.ts";
import { FreeCapacity } from "./free-capacity.ts";
import { topologiesOf } from "./levels.ts";
import { type FitGroup, placeAll, placeInOrder } from "./place-all.ts";
import {
  countUnseen,
  type Expected,
  isSameUnseen,
  type PlacedPod,
  type PlacedUnseen,
  placeOnPlan,
  plannedNodes,
  type ShownMembers,
  seenIndexes,
  type UnseenGroup,
  type UnseenPod,
  unseenPlaces,
} from "./unseen-pods.ts";

const NO_LABELS: FlavorLabels = {};

/** The members that one gang has in a cluster. */
export type LiveMembers = {
  readonly jobUid: string;
  readonly admission: number;
  readonly labels: FlavorLabels;
  readonly groups: readonly Expected[];
  /** Where they are planned. Omitted: nowhere. */
  readonly placement?: Placement | undefined;
};

/** A part of a gang's pods: the members that it `keeps`, or the others, its growth. */
export type GangPart = { readonly keeps: MemberCounts; readonly isGrowth: boolean };

/** One cluster: its record, its nodes, and the pods that no node shows yet but that will take capacity. */
export class ClusterState {
  readonly name: string;
  /** The nodes with the capacity that is left on them. */
  readonly free: FreeCapacity;
  /** How many pods of each class fit the capacity. */
  readonly counts: ClassCounts;
  /** The nodes as if nothing ran on them and all could be scheduled. */
  readonly empty: FreeCapacity;
  /** The capacity that `MostCapacity` fills. */
  readonly most: FreeCapacity;
  #facts: ClusterFacts | null = null;
  /** The same, but for the counter of admissions: another object only if something else has changed. */
  gates: ClusterFacts | null = null;
  /** False until its capacity was recorded. */
  observed = false;
  /** Rises when the empty nodes change. */
  emptyVersion = 0;
  /** The admissions that the round has planned here so far. */
  planned = 0;
  readonly #members = new Map<string, readonly BoundMember[]>();
  /** The members of each admission that nodes show, by node. */
  readonly #shown = new Map<string, Map<string, readonly BoundMember[]>>();
  readonly #noneShown: ShownMembers = new Map();
  /** The pods of whole gangs among them, as far as they were asked for. */
  readonly #shownPodsOf = new Map<string, readonly PlacedPod[]>();
  readonly #live = new Map<string, LiveMembers>();
  readonly #unseen = new Map<string, readonly UnseenGroup[]>();
  readonly #unbound = new Map<string, UnboundPod>();
  #stale = false;
  /** Where the capacity counts the unseen members of all gangs together. */
  #placedUnseen: PlacedUnseen = { onPlan: [], gangs: [], placed: [] };
  /** The same by gang. Null: not known since the capacity was made. */
  #unseenPlaces: ReadonlyMap<string, readonly UnseenPod[]> | null = null;

  constructor(name: string, fits: FitClasses) {
    this.name = name;
    this.free = new FreeCapacity(fits);
    this.counts = new ClassCounts(this.free);
    this.empty = new FreeCapacity(fits);
    this.most = new FreeCapacity(fits);
  }

  /** Null: the cluster is not registered. */
  get facts(): ClusterFacts | null {
    return this.#facts;
  }

  /** Sets the cluster's record, whose levels order the nodes. Null: it is not registered. */
  setFacts(facts: ClusterFacts | null): void {
    const [before, after] = [topologiesOf(this.#facts), topologiesOf(facts)];
    this.#facts = facts;
    if (canonicalJson(before) === canonicalJson(after)) return;
    this.free.setTopology(after);
    this.empty.setTopology(after);
    this.emptyVersion += 1;
    this.#stale = true;
  }

  /** Sets what the observer saw of a node and of our pods on it. Null: the node does not exist. */
  setNode(name: string, node: NodeCapacity | null, members: readonly BoundMember[]): void {
    const before = this.free.node(name);
    this.free.setNode(name, node);
    if (node === null || before === undefined || emptyFacts(before) !== emptyFacts(node)) {
      this.empty.setNode(name, node === null ? null : emptied(node));
      this.emptyVersion += 1;
    }
    this.#setMembers(name, members);
    this.#stale = true;
  }

  /** Sets a pod of others that is not bound to a node. Null: it is bound, or gone. */
  setUnbound(name: string, pod: UnboundPod | null): void {
    if (pod === null) this.#unbound.delete(name);
    else this.#unbound.set(name, pod);
    this.#stale = true;
  }

  /** Sets the members that a gang has in this cluster. Null: none. */
  setLive(jobUid: string, live: LiveMembers | null): void {
    // Which pods the shown members are depends on the roles that the gang has members of.
    const key = live ?? this.#live.get(jobUid);
    if (key !== undefined) this.#shownPodsOf.delete(admissionKey(jobUid, key.admission));
    if (live === null) this.#live.delete(jobUid);
    else this.#live.set(jobUid, live);
    this.#countUnseen(jobUid);
  }

  /**
   * Brings the capacity up to date: the observed nodes, less the pods that they do not show yet. Returns the classes of
   * which enough pods may fit now. `keepsSame`: beside the same pods as in the last round.
   */
  sync(keepsSame = false): readonly FitClass[] {
    const isStale = this.#stale;
    if (isStale) this.#makeFree();
    return this.counts.sync({ isStale, keepsSame });
  }

  /**
   * The pods of an admission, or of a part of it: those that nodes show, and those that the capacity counts on nodes
   * until they are shown.
   */
  podsOf(members: LiveMembers, part: GangPart | null = null): readonly PlacedPod[] {
    const live = this.#live.get(members.jobUid);
    const unseen = live?.admission === members.admission ? this.#unseenPods(live, part) : [];
    const shown = part === null ? this.#allShownPods(members) : this.#shownPods(members, part);
    return unseen.length === 0 ? shown : [...shown, ...unseen];
  }

  /** The shown pods of whole gangs are kept until a node shows others of them. */
  #allShownPods(members: LiveMembers): readonly PlacedPod[] {
    const key = admissionKey(members.jobUid, members.admission);
    const pods = this.#shownPodsOf.get(key) ?? this.#shownPods(members, null);
    if (pods.length > 0) this.#shownPodsOf.set(key, pods);
    return pods;
  }

  /** The pods of a gang that no node shows yet, as far as there is capacity for them. Those on plan come first. */
  unseenPodsOf(jobUid: string): readonly UnseenPod[] {
    this.#unseenPlaces ??= unseenPlaces(this.#placedUnseen);
    return this.#unseenPlaces.get(jobUid) ?? [];
  }

  /** Pods of one class may change places, so the first places of a role are those of members that the gang keeps. */
  #unseenPods({ jobUid, admission, groups }: LiveMembers, part: GangPart | null): readonly PlacedPod[] {
    const all = this.unseenPodsOf(jobUid);
    if (part === null) return all;
    const shown = this.#shownOf({ jobUid, admission });
    return groups.flatMap(({ role, returned }) => {
      const keeps = part.keeps[role] ?? 0;
      const kept = countUnseen(shown, { role, returned, count: keeps });
      const places = all.filter((place) => place.role === role);
      return part.isGrowth ? places.slice(kept) : places.slice(0, kept);
    });
  }

  /** True while a node shows a member of an admission, but for those that a gang keeps. */
  shows({ jobUid, admission }: Pick<LiveMembers, "jobUid" | "admission">, keeps: MemberCounts = {}): boolean {
    for (const members of this.#shownOf({ jobUid, admission }).values()) {
      if (members.some((member) => !isKept({ keeps }, member))) return true;
    }
    return false;
  }

  #shownPods({ jobUid, admission, labels, groups }: LiveMembers, part: GangPart | null): readonly PlacedPod[] {
    const pods: PlacedPod[] = [];
    for (const [node, members] of this.#shownOf({ jobUid, admission })) {
      for (const member of members) {
        if (part !== null && part.isGrowth === isKept(part, member)) continue;
        const group = groups.find((one) => one.role.toLowerCase() === member.role);
        if (group !== undefined)
          pods.push({ node, fit: this.free.fits.of(group.podClass, ofRole(labels, group.role)) });
      }
    }
    return pods;
  }

  #shownOf({ jobUid, admission }: Pick<LiveMembers, "jobUid" | "admission">): ShownMembers {
    return this.#shown.get(admissionKey(jobUid, admission)) ?? this.#noneShown;
  }

  #makeFree(): void {
    this.#stale = false;
    this.free.reset();
    this.empty.reset();
    this.#placeUnseen();
    placeInOrder(this.free, this.#unboundGroups());
  }

  /**
   * Places the unseen members of all gangs: on their planned nodes, if these take them, and the others together, except
   * those for which there is no capacity at all.
   */
  #placeUnseen(): void {
    const merged = new Map<FitClass, UnseenGroup>();
    // The gangs' order decides between equal requests, so it must not depend on the order of the changes.
    const unseen = [...this.#unseen].sort(([a], [b]) => compareText(a, b));
    const { onPlan, left: gangs } = placeOnPlan(this.free, unseen);
    for (const group of gangs.flatMap(([, groups]) => groups)) {
      const known = merged.get(group.fit);
      merged.set(group.fit, known === undefined ? group : { ...known, count: known.count + group.count });
    }
    const possible = [...merged.values()].map((group) => {
      return { ...group, requests: group.fit.podClass.requests, count: this.free.fitting(group.fit, group.count) };
    });
    const groups = possible.filter(({ count }) => count > 0).sort(compareDemand);
    const { mark } = this.free;
    if (groups.length > 0 && !placeAll(this.free, groups).all) placeInOrder(this.free, groups);
    const placed = this.free.placedAfter(mark).map(({ fit, slot, pods }) => {
      return { fit, node: this.free.nodeAt(slot)?.name ?? "", pods };
    });
    this.#placedUnseen = { onPlan, gangs, placed };
    this.#unseenPlaces = null;
  }

  #unboundGroups(): readonly FitGroup[] {
    const byName = [...this.#unbound].sort(([a], [b]) => compareText(a, b));
    const pods = byName.map(([, { podSpec, ...takes }], at) => {
      const { requests } = takes;
      const podClass = { ...takes, scheduling: podClassOf(podSpec).scheduling };
      return { requests, role: `unbound-${at}`, fit: this.free.fits.of(podClass, NO_LABELS) };
    });
    return pods.sort(compareDemand).map(({ fit }) => ({ fit, count: 1 }));
  }

  #setMembers(node: string, members: readonly BoundMember[]): void {
    const before = this.#members.get(node) ?? [];
    const after = Map.groupBy(members, keyOf);
    for (const key of new Set([...before.map(keyOf), ...after.keys()])) this.#show(node, key, after.get(key));
    if (members.length > 0) this.#members.set(node, members);
    else this.#members.delete(node);
    for (const uid of new Set([...before, ...members].map(({ jobUid }) => jobUid))) this.#countUnseen(uid);
  }

  #show(node: string, key: string, members: readonly BoundMember[] | undefined): void {
    this.#shownPodsOf.delete(key);
    const shown = this.#shown.get(key) ?? new Map<string, readonly BoundMember[]>();
    if (members === undefined) shown.delete(node);
    else shown.set(node, members);
    if (shown.size > 0) this.#shown.set(key, shown);
    else this.#shown.delete(key);
  }

  #countUnseen(jobUid: string): void {
    const live = this.#live.get(jobUid);
    const groups = live === undefined ? [] : this.#unseenOf(live);
    const before = this.#unseen.get(jobUid) ?? [];
    if (isSameUnseen(before, groups)) return;
    if (groups.length > 0) this.#unseen.set(jobUid, groups);
    else this.#unseen.delete(jobUid);
    this.#stale = true;
  }

  #unseenOf({ jobUid, admission, labels, groups, placement }: LiveMembers): readonly UnseenGroup[] {
    const shown = this.#shownOf({ jobUid, admission });
    return groups.flatMap((group) => {
      const count = countUnseen(shown, group);
      if (count <= 0) return [];
      const planned = placement === undefined ? [] : plannedNodes(placement, group, seenIndexes(shown, group));
      const fit = this.free.fits.of(group.podClass, ofRole(labels, group.role));
      return [{ fit, role: group.role, count, planned }];
    });
  }
}

/** True for a pod of the members that a gang keeps without its growth: those with the lowest indexes. */
function isKept({ keeps }: Pick<GangPart, "keeps">, { role, index }: Pick<BoundMember, "role" | "index">): boolean {
  return Object.entries(keeps).some(([name, count]) => name.toLowerCase() === role && index < count);
}

/** The members of a gang under one of its admissions. */
export function membersUnder(gang: PlanGang, admission: PlannedFrom): LiveMembers {
  const { number, members, flavorLabels, returned = {}, placement } = admission;
  const groups = gang.ask.roles.flatMap(({ role, podClass: at }) => {
    const podClass = gang.ask.podClasses[at];
    const count = members[role] ?? 0;
    return count > 0 && podClass !== undefined ? [{ role, podClass, count, returned: returned[role] }] : [];
  });
  return { jobUid: gang.uid, admission: number, labels: flavorLabels, groups, placement };
}

function keyOf({ jobUid, admission }: BoundMember): string {
  return admissionKey(jobUid, admission);
}

function admissionKey(jobUid: string, admission: number): string {
  return `${jobUid} ${admission}`;
}

/** The node as if nothing ran on it and it was ready: the most that a gang could ever get of it. */
function emptied(node: NodeCapacity): NodeCapacity {
  const { hostPorts: _, ...rest } = node;
  return { ...readyNode(rest), free: node.allocatable };
}

/** Everything of a node that does not change with the pods on it. */
function emptyFacts({ labels, taints, allocatable }: NodeCapacity): string {
  return JSON.stringify([labels, taints, allocatable]);
}

/** Returns the function that takes back all placements from now on, in every cluster. */
export function markCapacities(clusters: Iterable<ClusterState>): () => void {
  const marks = [...clusters].map(({ free }) => ({ free, mark: free.mark }));
  return () => {
    for (const { free, mark } of marks) free.undo(mark);
  };
}
