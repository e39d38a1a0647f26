import { compareText } from "../../../runtime/compare-text.ts";
import { canonicalJson } from "../../../runtime/json.ts";
import { liveAdmission } from "../../job/job.ts";
import type { Ask } from "../ask.ts";
import type { GangHolds, PlanGang, PlannedFrom } from "../plan-gang.ts";
import { type AskShape, amountsByPool, type SizedAsk, sizedAsk, unitsOf } from "./ask-shape.ts";
import type { PoolAmounts } from "./branch-use.ts";
import { choiceOf, type Flavors } from "./choices.ts";
import { type ClusterFacts, ClusterState, type LiveMembers, membersUnder } from "./cluster-state.ts";
import type { Fact } from "./facts.ts";
import { FitClasses } from "./fit-classes.ts";
import { type Entry, GangLines, type Lane } from "./gang-lines.ts";
import { HopefulLists } from "./hopeful-lists.ts";
import { type KeptRoom, liftedIn, liftedKey } from "./kept-room.ts";
import { passSteps } from "./line-ageing.ts";
import type { QuotaRise } from "./quota-levels.ts";
import { QuotaState } from "./quota-state.ts";
import { QuotaWaits } from "./quota-waits.ts";
import type { ClusterBlocks } from "./refused.ts";
import { isAwaited, newRequest, type Request } from "./requests.ts";
import { Runners } from "./runners.ts";
import { SearchTurns } from "./search-turns.ts";
import type { EligibleCluster, Parts } from "./state-parts.ts";
import { VictimBounds } from "./victim-bounds.ts";

/** After so many rounds requests beside reservations that have ended are forgotten. */
const FORGET_EVERY = 256;

/** The state in the form that rounds work on. Facts move it. It keeps its results for as long as they hold. */
export class FleetParts implements Parts {
  readonly quota = new QuotaState();
  readonly lines = new GangLines(this.quota);
  readonly turns = new SearchTurns();
  readonly waits = new QuotaWaits();
  readonly hopeful = new HopefulLists<Request>();
  readonly clusters = new Map<string, ClusterState>();
  resources: readonly string[] = [];
  runners: Parts["runners"] = new WeakMap();
  readonly choices: Parts["choices"] = new WeakMap();
  readonly keptBefore = new WeakMap<Entry, KeptRoom>();
  lastEnds: Parts["lastEnds"] = [];
  readonly kept: KeptRoom[] = [];
  /** While words are said: what nominees lack until their victims have left. */
  booked: QuotaRise = [];
  readonly #holds = new Map<string, GangHolds>();
  readonly #fits = new FitClasses();
  #eligible = new WeakMap<Ask, readonly EligibleCluster[]>();
  /** By the reservations that are lifted. */
  readonly #requests = new Map<string, WeakMap<SizedAsk, Map<string, Request>>>();
  #said = new WeakMap<AskShape, Said>();
  #uses = new WeakMap<PlannedFrom, PoolAmounts>();
  readonly #excludes = new Map<string, boolean>();
  #requestCount = 0;
  #syncs = 0;
  clustersVersion = 0;
  growthVersion = 0;
  /** When gangs may be preempted that are protected until then. Infinite: none is in the way. */
  recheckAtMs = Number.POSITIVE_INFINITY;
  /** Moves with every fact that may let a gang preempt others: all but those of gangs that only wait. */
  #runningVersion = 0;
  /** The answer of `running`, and the version of what runs that it is for. */
  #running: (ReturnType<Parts["running"]> & { readonly version: number }) | null = null;
  /** The version of it for which gangs were looked at that may preempt others. */
  #preemptedAt = -1;
  /** True: the last round gave gangs something, or there was none. */
  #gave = true;
  /** True: something changed that no lane watches, so that all must be looked at. */
  #wakesAll = false;
  #limitsVersion = -1;

  /** Moves the state to a fact, which replaces the one about the same entity. */
  set(fact: Fact): void {
    if (fact.kind !== "gang" || !onlyWaits(fact.gang) || !onlyWaits(this.lines.entries.get(fact.uid)?.gang ?? null)) {
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
        this.lines.tenants.set(fact.name, fact.tenant);
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

  /** Brings everything up to date, and wakes the lanes for which something may have changed. */
  sync(nowMs: number): void {
    const { lines, quota } = this;
    lines.passTime(nowMs);
    passSteps(lines.lines.values(), nowMs);
    const { limits } = quota;
    if (limits !== undefined && this.#limitsVersion !== quota.version) {
      this.#wakesAll = true;
      lines.readQueues();
    }
    this.#limitsVersion = quota.version;
    if (this.#wakesAll) this.#wakeAll();
    this.waits.sync(quota, this.clustersVersion);
    this.#syncs += 1;
    if (this.#syncs % FORGET_EVERY === 0) this.#forgetRequests();
    this.waits.forgetSome();
    const isMoved = this.#preemptedAt !== this.#runningVersion || lines.digests.takeMoved(quota);
    const mayPreempt = isMoved || nowMs >= this.recheckAtMs;
    const keepsSame = !mayPreempt && this.#keepsSame();
    if (!keepsSame) this.growthVersion += 1;
    for (const cluster of this.clusters.values()) {
      cluster.planned = 0;
      cluster.watch.forgetSome();
      this.#syncRoom(cluster, keepsSame);
    }
    this.#wakeRestless(mayPreempt);
  }

  /** Notes whether a round gave gangs anything. */
  noteGiven(gave: boolean): void {
    this.#gave = gave;
  }

  /** True if the round places and keeps the same as the last one before it decides about lanes. */
  #keepsSame(): boolean {
    if (this.#gave || this.turns.includeReservations) return false;
    for (const entry of this.lines.nominees) {
      if (entry.gang.nomination?.reservation !== undefined && !this.keptBefore.has(entry)) return false;
    }
    return true;
  }

  /** Gangs that may preempt others are looked at again once what runs has changed, or victims lose a protection. */
  #wakeRestless(mayPreempt: boolean): void {
    const { lines, turns } = this;
    if (mayPreempt) {
      this.recheckAtMs = Number.POSITIVE_INFINITY;
      turns.includeReservations = true;
      turns.addAll(lines);
    }
    this.#preemptedAt = this.#runningVersion;
    for (const lane of lines.sleepless) lines.wake(lane);
  }

  /** Notes when gangs may be preempted that are protected until then. */
  noteRecheck(atMs: number): void {
    this.recheckAtMs = Math.min(this.recheckAtMs, atMs);
  }

  /** Brings the room of one cluster up to date, which is enough for words about it. */
  syncRoom(name: string): void {
    const cluster = this.clusters.get(name);
    if (cluster !== undefined) this.#syncRoom(cluster);
  }

  #syncRoom(cluster: ClusterState, keepsSame = false): void {
    for (const request of cluster.sync(keepsSame)) {
      // This or another cluster has opened it.
      if (request.hopeful && request.closedFor === -1) continue;
      request.closedFor = -1;
      if (isAwaited(request)) this.hopeful.add(request);
      this.waits.noteOpen(request, this.quota);
    }
  }

  /** The tokens that a waiting gang holds for the admission that it would get now, by pool. Null: none. */
  holdsOf(uid: string): GangHolds["amounts"] | null {
    const holds = this.#holds.get(uid);
    const gang = this.lines.entries.get(uid)?.gang;
    return holds !== undefined && gang?.waits && holds.admission === gang.lastAdmission + 1 ? holds.amounts : null;
  }

  /** Returns what takes back all placements from now on, in every cluster. */
  markRooms(): () => void {
    const marks = [...this.clusters.values()].map(({ room }) => ({ room, mark: room.mark }));
    return () => {
      for (const { room, mark } of marks) room.undo(mark);
    };
  }

  /** The waiting gangs that hold tokens, with these. */
  *allHolds(): Iterable<{ readonly entry: Entry; readonly amounts: GangHolds["amounts"] }> {
    for (const uid of this.#holds.keys()) {
      const entry = this.lines.entries.get(uid);
      const amounts = this.holdsOf(uid);
      if (entry !== undefined && amounts !== null) yield { entry, amounts };
    }
  }

  /**
   * Takes the holds of nominees off the use for the rest of the round, since they are part of what the nominees need.
   * `undo` of the quota's state brings them back. A round must charge all that a nominee needs, or has been admitted
   * with, before it decides about other gangs: what is held for it is not theirs. Wakes the nominees' lanes: what they
   * wait for comes sooner than others see it.
   */
  dischargeHolds(): void {
    for (const { entry, amounts } of this.allHolds()) {
      for (const [pool, amount] of Object.entries(amounts)) this.quota.discharge(entry.account, pool, amount);
      if (entry.lane !== null) this.lines.wake(entry.lane);
    }
  }

  isStrict(queue: string): boolean {
    return this.quota.queues.get(queue)?.strategy === "STRICT_FIFO";
  }

  clustersFor(ask: Ask): readonly EligibleCluster[] {
    const known = this.#eligible.get(ask);
    if (known !== undefined) return known;
    const eligible = [...this.clusters.values()]
      .sort((a, b) => compareText(a.name, b.name))
      .flatMap((cluster): readonly EligibleCluster[] => {
        const { gates: facts, observed } = cluster;
        return facts === null ? [] : [{ cluster, facts, block: blockOf(ask, facts, observed) }];
      });
    this.#eligible.set(ask, eligible);
    return eligible;
  }

  requestOf(lane: Lane, sized: SizedAsk, flavors: Flavors, lifted = liftedKey(this.kept)): Request {
    const asks = this.#requests.get(lifted) ?? new WeakMap<SizedAsk, Map<string, Request>>();
    this.#requests.set(lifted, asks);
    const requests = asks.get(sized) ?? new Map<string, Request>();
    asks.set(sized, requests);
    const key = flavors.length === 1 ? (flavors[0] ?? "") : JSON.stringify(flavors);
    const known = requests.get(key);
    if (known !== undefined) return known;
    const base = lifted === "" ? null : this.requestOf(lane, sized, flavors, "");
    const of = { id: this.#requestCount, lifted, base };
    const made = newRequest(of, sized, base?.choice ?? choiceOf(lane, flavors, this.resources));
    this.#requestCount += 1;
    requests.set(key, made);
    return made;
  }

  /** Forgets the requests beside reservations that have ended. */
  #forgetRequests(): void {
    const isReserved = (uid: string) => this.lines.entries.get(uid)?.gang.nomination?.reservation !== undefined;
    for (const lifted of this.#requests.keys()) if (!liftedIn(lifted).every(isReserved)) this.#requests.delete(lifted);
  }

  shared(shape: AskShape, requests: readonly Request[], make: () => ClusterBlocks): ClusterBlocks {
    let version = 0;
    for (const { emptyVersion } of this.clusters.values()) version += emptyVersion;
    let known = this.#said.get(shape);
    if (known === undefined || known.version !== version) {
      known = { version, blocks: new Map() };
      this.#said.set(shape, known);
    }
    let key = "";
    for (const { id } of requests) key += `${id} `;
    const blocks = known.blocks.get(key) ?? make();
    known.blocks.set(key, blocks);
    return blocks;
  }

  usesOf({ shape }: Entry, admission: PlannedFrom): PoolAmounts {
    const known = this.#uses.get(admission);
    if (known !== undefined) return known;
    const uses = amountsByPool(unitsOf(sizedAsk(shape.ask, admission.members), this.resources), admission.flavors);
    this.#uses.set(admission, uses);
    return uses;
  }

  readonly running: Parts["running"] = () => {
    if (this.#running?.version !== this.#runningVersion) {
      const runners = new Runners(this);
      this.#running = { runners, bounds: new VictimBounds(this, runners), version: this.#runningVersion };
    }
    return this.#running;
  };

  readonly excludes = (one: string, other: string): boolean => {
    const key = JSON.stringify([one, other]);
    const known = this.#excludes.get(key) ?? excludesIn([...this.clusters.values()], one, other);
    this.#excludes.set(key, known);
    return known;
  };

  #setHolds(uid: string, holds: GangHolds | null): void {
    if (holds === null) this.#holds.delete(uid);
    else this.#holds.set(uid, holds);
    const lane = this.lines.entries.get(uid)?.lane ?? null;
    if (lane !== null) this.lines.lookAgain(lane);
  }

  #setGang(uid: string, gang: PlanGang | null): void {
    const before = this.lines.entries.get(uid)?.gang;
    this.lines.set(uid, gang);
    const from = before === undefined ? null : (liveAdmission(before)?.cluster ?? null);
    const live = gang === null ? null : liveMembers(gang);
    if (from !== null && from !== live?.cluster) this.#clusterOf(from).setLive(uid, null);
    if (live !== null) this.#clusterOf(live.cluster).setLive(uid, live.members);
  }

  #setCluster(name: string, facts: ClusterFacts | null): void {
    const cluster = this.#clusterOf(name);
    cluster.facts = facts;
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
    this.#said = new WeakMap();
    this.#uses = new WeakMap();
    this.runners = new WeakMap();
    for (const line of this.lines.lines.values()) line.runners = null;
    this.clustersVersion += 1;
    this.#excludes.clear();
    this.hopeful.clear();
    for (const { watch } of this.clusters.values()) watch.clear();
    this.#wakesAll = true;
  }

  #wakeAll(): void {
    this.#wakesAll = false;
    for (const line of this.lines.lines.values()) {
      line.hasUnflavored = null;
      for (const lane of line.lanes.values()) this.lines.lookAgain(lane);
    }
  }

  #clusterOf(name: string): ClusterState {
    const cluster = this.clusters.get(name) ?? new ClusterState(name, this.#fits);
    this.clusters.set(name, cluster);
    return cluster;
  }
}

/** The answers of clusters to requests, by the requests' numbers, for a version of the empty nodes. */
type Said = { readonly version: number; readonly blocks: Map<string, ClusterBlocks> };

/** Everything of a cluster's record that decides about admissions, but its counter. */
function gatesText(facts: ClusterFacts | null): string {
  return facts === null ? "" : canonicalJson({ ...facts, admissionCounter: 0 });
}

/** True if some cluster has both flavors, and no node of any can have the labels of both. */
function excludesIn(clusters: readonly ClusterState[], one: string, other: string): boolean {
  const pairs = clusters.flatMap(({ facts }) => {
    const of = (name: string) => facts?.flavors.find((flavor) => flavor.name === name)?.nodeLabels;
    const [a, b] = [of(one), of(other)];
    return a === undefined || b === undefined
      ? []
      : [Object.entries(a).some(([key, value]) => (b[key] ?? value) !== value)];
  });
  return pairs.length > 0 && pairs.every((excluded) => excluded);
}

/** Why a cluster refuses an ask, even if it has room. */
export function blockOf(ask: Ask, facts: ClusterFacts, observed: boolean): EligibleCluster["block"] {
  const { clusters, clusterSelector } = ask.placement;
  if (clusters.length > 0 && !clusters.includes(facts.name)) return "NotSelected";
  if (Object.entries(clusterSelector).some(([key, value]) => facts.labels[key] !== value)) return "NotSelected";
  if (facts.retired === true) return "Retired";
  if (facts.cordoned) return "Cordoned";
  if (!observed) return "CapacityUnknown";
  return facts.reachable ? null : "Unreachable";
}

/** True for a gang that has no admission and no nomination, or that there is not. */
function onlyWaits(gang: PlanGang | null): boolean {
  return gang === null || (gang.admissions.length === 0 && gang.nomination === undefined);
}

function liveMembers(gang: PlanGang): { readonly cluster: string; readonly members: LiveMembers } | null {
  const live = liveAdmission(gang);
  return live === null || live.cluster === null ? null : { cluster: live.cluster, members: membersUnder(gang, live) };
}
