import { compareText } from "../../../runtime/compare-text.ts";
import { canonicalJson } from "../../../runtime/json.ts";
import { liveAdmission } from "../../job/job.ts";
import type { PlanGang } from "../plan-gang.ts";
import type { AskShape, SizedAsk } from "./ask-shape.ts";
import { choiceOf, type Flavors } from "./choices.ts";
import { type ClusterFacts, ClusterState, type LiveMembers } from "./cluster-state.ts";
import type { Fact } from "./facts.ts";
import { FitClasses } from "./fit-classes.ts";
import { GangLines, type Lane } from "./gang-lines.ts";
import { HopefulLists } from "./hopeful-lists.ts";
import { QuotaState } from "./quota-state.ts";
import { QuotaWaits } from "./quota-waits.ts";
import type { ClusterBlocks } from "./refused.ts";
import { newRequest, type Request } from "./requests.ts";
import type { EligibleCluster, Parts } from "./state-parts.ts";

/** After so many rounds, the clusters stop counting pods for which no gang waits any more. */
const FORGET_EVERY = 64;

/** The state in the form that rounds work on. Facts move it. It keeps its results for as long as they hold. */
export class FleetParts implements Parts {
  readonly quota = new QuotaState();
  readonly lines = new GangLines(this.quota);
  readonly waits = new QuotaWaits();
  readonly hopeful = new HopefulLists<Request>();
  readonly clusters = new Map<string, ClusterState>();
  resources: readonly string[] = [];
  readonly #fits = new FitClasses();
  #eligible = new WeakMap<AskShape, readonly EligibleCluster[]>();
  #requests = new WeakMap<SizedAsk, Map<string, Request>>();
  #said = new WeakMap<AskShape, Said>();
  #requestCount = 0;
  #syncs = 0;
  clustersVersion = 0;
  /** True: something changed that no lane watches, so that all must be looked at. */
  #wakesAll = false;
  #limitsVersion = -1;

  /** Moves the state to a fact, which replaces the one about the same entity. */
  set(fact: Fact): void {
    switch (fact.kind) {
      case "gang":
        this.#setGang(fact.uid, fact.gang);
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
    const { limits } = quota;
    if (limits !== undefined && this.#limitsVersion !== quota.version) {
      this.#wakesAll = true;
      lines.readStops();
    }
    this.#limitsVersion = quota.version;
    if (this.#wakesAll) this.#wakeAll();
    this.waits.sync(quota, lines);
    this.#syncs += 1;
    for (const cluster of this.clusters.values()) {
      cluster.planned = 0;
      if (this.#syncs % FORGET_EVERY === 0) cluster.watch.forget();
      this.#syncRoom(cluster);
    }
    this.hopeful.wakeFew(lines);
    for (const lane of lines.restless) lines.wake(lane);
  }

  /** Brings the room of one cluster up to date, which is enough for words about it. */
  syncRoom(name: string): void {
    const cluster = this.clusters.get(name);
    if (cluster !== undefined) this.#syncRoom(cluster);
  }

  #syncRoom(cluster: ClusterState): void {
    for (const request of cluster.sync()) {
      request.closedFor = -1;
      this.hopeful.add(request);
    }
  }

  isStrict(queue: string): boolean {
    return this.quota.queues.get(queue)?.strategy === "STRICT_FIFO";
  }

  clustersFor(shape: AskShape): readonly EligibleCluster[] {
    const known = this.#eligible.get(shape);
    if (known !== undefined) return known;
    const eligible = [...this.clusters.values()]
      .sort((a, b) => compareText(a.name, b.name))
      .flatMap((cluster): readonly EligibleCluster[] => {
        const { gates: facts, observed } = cluster;
        return facts === null ? [] : [{ cluster, facts, block: blockOf(shape, facts, observed) }];
      });
    this.#eligible.set(shape, eligible);
    return eligible;
  }

  requestOf(lane: Lane, sized: SizedAsk, flavors: Flavors): Request {
    let requests = this.#requests.get(sized);
    if (requests === undefined) {
      requests = new Map();
      this.#requests.set(sized, requests);
    }
    const key = flavors.length === 1 ? (flavors[0] ?? "") : JSON.stringify(flavors);
    const known = requests.get(key);
    if (known !== undefined) return known;
    const made = newRequest(this.#requestCount, sized, choiceOf(lane, flavors, this.resources));
    this.#requestCount += 1;
    requests.set(key, made);
    return made;
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
    this.#requests = new WeakMap();
    this.#said = new WeakMap();
    this.clustersVersion += 1;
    this.hopeful.clear();
    for (const { watch } of this.clusters.values()) watch.clear();
    this.#wakesAll = true;
  }

  #wakeAll(): void {
    this.#wakesAll = false;
    for (const line of this.lines.lines.values()) {
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

/** Why a cluster refuses an ask, even if it has room. */
export function blockOf(
  { ask }: Pick<AskShape, "ask">,
  facts: ClusterFacts,
  observed: boolean,
): EligibleCluster["block"] {
  const { clusters, clusterSelector } = ask.placement;
  if (clusters.length > 0 && !clusters.includes(facts.name)) return "NotSelected";
  if (Object.entries(clusterSelector).some(([key, value]) => facts.labels[key] !== value)) return "NotSelected";
  if (facts.retired === true) return "Retired";
  if (facts.cordoned) return "Cordoned";
  if (!observed) return "CapacityUnknown";
  return facts.reachable ? null : "Unreachable";
}

function liveMembers(gang: PlanGang): { readonly cluster: string; readonly members: LiveMembers } | null {
  const live = liveAdmission(gang);
  if (live === null || live.cluster === null) return null;
  const { number, members, nodeLabels, cluster } = live;
  const groups = gang.ask.roles.flatMap(({ role, podClass: at }) => {
    const podClass = gang.ask.podClasses[at];
    const count = members[role] ?? 0;
    return count > 0 && podClass !== undefined ? [{ role, podClass, count }] : [];
  });
  const of = { jobUid: gang.uid, admission: number, nodeLabels, labelsKey: canonicalJson(nodeLabels), groups };
  return { cluster, members: of };
}
