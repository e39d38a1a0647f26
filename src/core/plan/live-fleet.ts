import { compareText } from "../../runtime/compare-text.ts";
import { canonicalJson } from "../../runtime/json.ts";
import { liveAdmission } from "../job/job.ts";
import { ClusterState, type LiveMembers, membersUnder } from "./capacity/cluster-state.ts";
import { FitClasses } from "./capacity/fit-classes.ts";
import type { Fact } from "./facts/facts.ts";
import { choiceOf, type Flavors, flavorsKey } from "./fit/flavors.ts";
import { differingKey } from "./fit/flavors-apart.ts";
import { blockOf, type EligibleCluster, type Fleet } from "./fit/fleet.ts";
import { newRequest } from "./fit/requests.ts";
import { excludedIn } from "./fit/reserved.ts";
import { selectsOthers } from "./fit/selects-others.ts";
import type { Ask, PodClass } from "./model/ask.ts";
import type { NodeLabels } from "./model/node-labels.ts";
import type { GangHolds, PlanGang, PlannedFrom } from "./model/plan-gang.ts";
import type { RoundBounds } from "./model/round-bounds.ts";
import type { ClusterFacts } from "./model/snapshot.ts";
import type { Running } from "./preempt/find-victims.ts";
import { Round } from "./preempt/round.ts";
import { RunningAdmissions } from "./preempt/running-admissions.ts";
import { VictimBounds } from "./preempt/victim-bounds.ts";
import { type AskShape, heldUnder, type SizedAsk } from "./queues/ask-shape.ts";
import { requeue } from "./queues/class-state.ts";
import { GangQueues } from "./queues/gang-queues.ts";
import { passSteps } from "./queues/order.ts";
import { noteAdmissions, noteUnflavored } from "./queues/queue-state.ts";
import type { GangClass, GangRecord, Request } from "./queues/records.ts";
import type { ClusterBlocks } from "./queues/refusals.ts";
import { Requeue } from "./requeue/requeue.ts";
import type { PoolAmounts } from "./usage/branch-use.ts";
import { QuotaState } from "./usage/quota-state.ts";

/** After so many rounds requests beside reservations that have ended are forgotten. */
const FORGET_EVERY = 256;

/** The state in the form that rounds work on. Facts move it. It keeps its results for as long as they hold. */
export class LiveFleet implements Fleet {
  readonly quota = new QuotaState();
  readonly queues = new GangQueues(this.quota);
  readonly requeue = new Requeue();
  readonly clusters = new Map<string, ClusterState>();
  resources: readonly string[] = [];
  runningAdmissions: Fleet["runningAdmissions"] = new WeakMap();
  readonly choices: Fleet["choices"] = new WeakMap();
  readonly #holds = new Map<string, GangHolds>();
  readonly #fits = new FitClasses();
  #eligible = new WeakMap<Ask, readonly EligibleCluster[]>();
  /** By the reservations that are excluded. */
  readonly #requests = new Map<string, WeakMap<SizedAsk, Map<string, Request>>>();
  #reported = new WeakMap<AskShape, SharedAnswers>();
  #uses = new WeakMap<PlannedFrom, PoolAmounts>();
  readonly #excludes = new Map<string, boolean>();
  /** By flavors: whether some cluster has all of them. */
  readonly #together = new Map<string, boolean>();
  #cannotHave = new WeakMap<PodClass, Map<string, boolean>>();
  #requestCount = 0;
  #syncs = 0;
  clustersVersion = 0;
  growthVersion = 0;
  /** Moves with every fact that may let a gang preempt others: all but those of gangs that only wait. */
  #runningVersion = 0;
  /** The answer of `running`, and the version of what runs that it is for. */
  #running: (Running & { readonly version: number }) | null = null;
  /** The version of it for which gangs were looked at that may preempt others. */
  #preemptedAt = -1;
  /** True: something changed that no gang class watches, so that all must be looked at. */
  #wakesAll = false;
  #limitsVersion = -1;

  /** Moves the state to a fact, which replaces the one about the same entity. */
  set(fact: Fact): void {
    if (fact.kind !== "gang" || !onlyWaits(fact.gang) || !onlyWaits(this.queues.gangs.get(fact.uid)?.facts ?? null)) {
      this.#runningVersion += 1;
    }
    switch (fact.kind) {
      case "gang":
        this.#setGang(fact.uid, fact.gang);
        break;
      case "holds":
        this.#setHolds(fact.uid, fact.holds);
        break;
      case "sum":
        this.quota.setSum(fact.scope, fact.used);
        break;
      case "queue":
        this.quota.setQueue(fact.name, fact.queue);
        break;
      case "pool":
        this.quota.setPool(fact.name, fact.pool);
        break;
      case "tenant":
        this.queues.tenants.set(fact.name, fact.tenant);
        break;
      case "cluster":
        this.#setCluster(fact.name, fact.facts);
        break;
      case "node":
        this.#clusterOf(fact.cluster).setNode(fact.name, fact.node, fact.members);
        break;
      case "unbound":
        this.#clusterOf(fact.cluster).setUnbound(fact.name, fact.pod);
        break;
      case "cursor":
        this.#setObserved(fact.cluster, fact.at !== null);
        break;
    }
  }

  /** Brings everything up to date, and wakes the gang classes for which something may have changed. */
  sync(nowMs: number): void {
    const { queues, quota } = this;
    queues.passTime(nowMs);
    passSteps(queues.all.values(), nowMs);
    const { limits } = quota;
    if (limits !== undefined && this.#limitsVersion !== quota.version) {
      this.#wakesAll = true;
      queues.readQueues();
    }
    this.#limitsVersion = quota.version;
    if (this.#wakesAll) this.#wakeAll();
    const { quotaWaits, capacityWaits, lastRound } = this.requeue;
    quotaWaits.sync(quota, this.clustersVersion);
    this.#syncs += 1;
    if (this.#syncs % FORGET_EVERY === 0) this.#forgetRequests();
    quotaWaits.forgetSome();
    const isMoved = this.#preemptedAt !== this.#runningVersion;
    const moved = isMoved ? [] : queues.digests.movedTrees(quota);
    queues.digests.forgetUsed(moved);
    const mayPreempt = isMoved || moved.length > 0 || nowMs >= lastRound.recheckAtMs;
    const keepsSame = !mayPreempt && this.#keepsSame();
    if (!keepsSame) this.growthVersion += 1;
    for (const cluster of this.clusters.values()) {
      cluster.planned = 0;
      capacityWaits.forgetSome(cluster);
      this.requeue.syncCapacity(cluster, quota, keepsSame);
    }
    this.#requeueReevaluated(mayPreempt);
  }

  /** A round that is about to begin. The state must be up to date. */
  newRound(of: { readonly nowMs: number; readonly number: number; readonly bounds: RoundBounds }): Round {
    return new Round({ fleet: this, requeue: this.requeue, running: this.running(), ...of });
  }

  /** True if the round places and keeps the same as the last one before it decides about gang classes. */
  #keepsSame(): boolean {
    const { lastRound, searchQueue } = this.requeue;
    if (lastRound.gave || searchQueue.includeReservations) return false;
    for (const gang of this.queues.nominees) {
      if (gang.facts.nomination?.reservation !== undefined && !lastRound.kept.has(gang)) return false;
    }
    return true;
  }

  /** Gangs that may preempt others are looked at again once what runs has changed, or victims lose a protection. */
  #requeueReevaluated(mayPreempt: boolean): void {
    const { queues, requeue: due } = this;
    if (mayPreempt) {
      due.lastRound.recheckAtMs = Number.POSITIVE_INFINITY;
      due.searchQueue.includeReservations = true;
      due.searchQueue.addAll(queues);
    }
    this.#preemptedAt = this.#runningVersion;
    for (const gangClass of queues.alwaysReevaluated) requeue(gangClass, "mayFit");
  }

  /** Brings the capacity of one cluster up to date, which is enough for messages about it. */
  syncCapacity(name: string): void {
    const cluster = this.clusters.get(name);
    if (cluster !== undefined) this.requeue.syncCapacity(cluster, this.quota);
  }

  /**
   * The tokens that a gang holds for the admission that it would get now, by pool: a nominee, or one that moves. Null:
   * none.
   */
  holdsOf(uid: string): GangHolds["amounts"] | null {
    const holds = this.#holds.get(uid);
    const record = this.queues.gangs.get(uid);
    const gang = record?.facts;
    const live = record === undefined || gang?.moves !== true ? null : liveAdmission(record.facts);
    if (record !== undefined && live !== null) return Object.fromEntries(this.usesOf(record, live));
    return holds !== undefined && gang?.waits && holds.admission === gang.lastAdmission + 1 ? holds.amounts : null;
  }

  /** The waiting gangs that hold tokens, with these. */
  *allHolds(): Iterable<{ readonly gang: GangRecord; readonly amounts: GangHolds["amounts"] }> {
    for (const uid of this.#holds.keys()) {
      const gang = this.queues.gangs.get(uid);
      const amounts = this.holdsOf(uid);
      if (gang !== undefined && amounts !== null) yield { gang, amounts };
    }
  }

  isStrict(queue: string): boolean {
    return this.quota.queues.get(queue)?.strategy === "STRICT_FIFO";
  }

  clustersFor(ask: Ask): readonly EligibleCluster[] {
    const known = this.#eligible.get(ask);
    if (known !== undefined) return known;
    const byName = [...this.clusters.values()].sort((a, b) => compareText(a.name, b.name));
    const eligible = byName.flatMap((cluster): readonly EligibleCluster[] => {
      const { gates: facts, observed } = cluster;
      return facts === null ? [] : [{ cluster, facts, block: blockOf(ask, facts, observed) }];
    });
    this.#eligible.set(ask, eligible);
    return eligible;
  }

  requestOf(gangClass: GangClass, sized: SizedAsk, flavors: Flavors, excluded: string): Request {
    const asks = this.#requests.get(excluded) ?? new WeakMap<SizedAsk, Map<string, Request>>();
    this.#requests.set(excluded, asks);
    const requests = asks.get(sized) ?? new Map<string, Request>();
    asks.set(sized, requests);
    const key = flavorsKey(flavors);
    const known = requests.get(key);
    if (known !== undefined) return known;
    const base = excluded === "" ? null : this.requestOf(gangClass, sized, flavors, "");
    const of = { id: this.#requestCount, excluded, base };
    const made = newRequest(of, sized, base?.choice ?? choiceOf(gangClass, flavors, this.resources));
    this.#requestCount += 1;
    requests.set(key, made);
    return made;
  }

  /** Forgets the requests beside reservations that have ended. */
  #forgetRequests(): void {
    const isReserved = (uid: string) => this.queues.gangs.get(uid)?.facts.nomination?.reservation !== undefined;
    for (const excluded of this.#requests.keys())
      if (!excludedIn(excluded).every(isReserved)) this.#requests.delete(excluded);
  }

  shared(shape: AskShape, requests: readonly Request[], make: () => ClusterBlocks): ClusterBlocks {
    let version = 0;
    for (const { emptyVersion } of this.clusters.values()) version += emptyVersion;
    let known = this.#reported.get(shape);
    if (known === undefined || known.version !== version) {
      known = { version, blocks: new Map() };
      this.#reported.set(shape, known);
    }
    let key = "";
    for (const { id } of requests) key += `${id} `;
    const blocks = known.blocks.get(key) ?? make();
    known.blocks.set(key, blocks);
    return blocks;
  }

  usesOf({ shape }: GangRecord, admission: PlannedFrom): PoolAmounts {
    const known = this.#uses.get(admission);
    if (known !== undefined) return known;
    const uses = heldUnder(shape.ask, admission, this.resources);
    this.#uses.set(admission, uses);
    return uses;
  }

  /** The gangs that run, and what searches can find among them. Made again once what runs has changed. */
  running(): Running {
    if (this.#running?.version !== this.#runningVersion) {
      const runningAdmissions = new RunningAdmissions(this);
      this.#running = {
        runningAdmissions,
        bounds: new VictimBounds(this, runningAdmissions),
        version: this.#runningVersion,
      };
    }
    return this.#running;
  }

  readonly excludes = (one: string, other: string): boolean => {
    const key = JSON.stringify([one, other]);
    const known = this.#excludes.get(key) ?? excludesIn([...this.clusters.values()], one, other);
    this.#excludes.set(key, known);
    return known;
  };

  readonly inOneCluster = (flavors: readonly string[]): boolean => {
    const wanted = [...new Set(flavors)].sort();
    if (wanted.length < 2) return true;
    const key = JSON.stringify(wanted);
    const known = this.#together.get(key) ?? [...this.clusters.values()].some((cluster) => hasAll(cluster, wanted));
    this.#together.set(key, known);
    return known;
  };

  readonly cannotHave = (podClass: PodClass, flavor: string): boolean => {
    const flavors = this.#cannotHave.get(podClass) ?? new Map<string, boolean>();
    this.#cannotHave.set(podClass, flavors);
    const known = flavors.get(flavor) ?? selectsOthers(podClass, this.#labelsOf(flavor));
    flavors.set(flavor, known);
    return known;
  };

  /** The labels of a flavor's nodes in each cluster that has it. */
  #labelsOf(flavor: string): readonly NodeLabels[] {
    const all = [...this.clusters.values()].flatMap(({ facts }) => facts?.flavors ?? []);
    return all.flatMap(({ name, nodeLabels }) => (name === flavor ? [nodeLabels] : []));
  }

  #setHolds(uid: string, holds: GangHolds | null): void {
    if (holds === null) this.#holds.delete(uid);
    else this.#holds.set(uid, holds);
    const gangClass = this.queues.gangs.get(uid)?.gangClass ?? null;
    if (gangClass !== null) requeue(gangClass, "changed");
  }

  #setGang(uid: string, gang: PlanGang | null): void {
    const before = this.queues.gangs.get(uid)?.facts;
    this.queues.set(uid, gang);
    const from = before === undefined ? null : (liveAdmission(before)?.cluster ?? null);
    const live = gang === null ? null : liveMembers(gang);
    if (from !== null && from !== live?.cluster) this.#clusterOf(from).setLive(uid, null);
    if (live !== null) this.#clusterOf(live.cluster).setLive(uid, live.members);
  }

  #setCluster(name: string, facts: ClusterFacts | null): void {
    const cluster = this.#clusterOf(name);
    cluster.setFacts(facts);
    if (gatesText(cluster.gates) === gatesText(facts)) return;
    cluster.gates = facts;
    this.#clustersChanged();
  }

  #setObserved(name: string, observed: boolean): void {
    const cluster = this.#clusterOf(name);
    if (cluster.observed === observed) return;
    cluster.observed = observed;
    this.#clustersChanged();
  }

  #clustersChanged(): void {
    const all = [...this.clusters.values()].flatMap(({ facts }) => facts?.flavors ?? []);
    this.resources = [...new Set(all.map(({ resource }) => resource))].sort();
    this.#eligible = new WeakMap();
    this.#requests.clear();
    this.#reported = new WeakMap();
    this.#uses = new WeakMap();
    this.runningAdmissions = new WeakMap();
    for (const gangQueue of this.queues.all.values()) noteAdmissions(gangQueue, null);
    this.clustersVersion += 1;
    this.#excludes.clear();
    this.#together.clear();
    this.#cannotHave = new WeakMap();
    this.requeue.forgetClusters();
    this.#wakesAll = true;
  }

  #wakeAll(): void {
    this.#wakesAll = false;
    for (const gangQueue of this.queues.all.values()) {
      noteUnflavored(gangQueue, null);
      for (const gangClass of gangQueue.classes.values()) requeue(gangClass, "changed");
    }
  }

  #clusterOf(name: string): ClusterState {
    const cluster = this.clusters.get(name) ?? new ClusterState(name, this.#fits);
    this.clusters.set(name, cluster);
    return cluster;
  }
}

/** The answers of clusters to requests, by the requests' numbers, for a version of the empty nodes. */
type SharedAnswers = { readonly version: number; readonly blocks: Map<string, ClusterBlocks> };

/** Everything of a cluster's record that decides about admissions, but its counter. */
function gatesText(facts: ClusterFacts | null): string {
  return facts === null ? "" : canonicalJson({ ...facts, admissionCounter: 0 });
}

/** True if some cluster has both flavors, and no node of any can have the labels of both. */
function excludesIn(clusters: readonly ClusterState[], one: string, other: string): boolean {
  const pairs = clusters.flatMap(({ facts }) => {
    const of = (name: string) => facts?.flavors.find((flavor) => flavor.name === name)?.nodeLabels;
    const [a, b] = [of(one), of(other)];
    return a === undefined || b === undefined ? [] : [differingKey(a, b) !== null];
  });
  return pairs.length > 0 && pairs.every((excluded) => excluded);
}

function hasAll({ facts }: ClusterState, flavors: readonly string[]): boolean {
  return flavors.every((flavor) => facts?.flavors.some(({ name }) => name === flavor) === true);
}

/** True if the gang is unknown, or has neither admission nor nomination. */
function onlyWaits(gang: PlanGang | null): boolean {
  return gang === null || (gang.admissions.length === 0 && gang.nomination === undefined);
}

function liveMembers(gang: PlanGang): { readonly cluster: string; readonly members: LiveMembers } | null {
  const live = liveAdmission(gang);
  return live === null || live.cluster === null ? null : { cluster: live.cluster, members: membersUnder(gang, live) };
}
