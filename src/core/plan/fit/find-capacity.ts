import type { ClusterState } from "../capacity/cluster-state.ts";
import type { FitClass } from "../capacity/fit-classes.ts";
import type { PlanGang } from "../model/plan-gang.ts";
import { waitForCapacity } from "../queues/class-state.ts";
import type { CapacityTry, GangClass, Request } from "../queues/records.ts";
import { type ClusterBlock, type ClusterBlocks, clusterBlocks } from "../queues/refusals.ts";
import type { Requeue } from "../requeue/requeue.ts";
import type { Fleet } from "./fleet.ts";
import { placeTried, reasonOf, shortOf, tryCapacity, tryIn } from "./requests.ts";
import type { Reserved } from "./reserved.ts";

/** A request that was placed, and the point to which its cluster goes back if it is not admitted. */
export type Placed = { readonly tried: CapacityTry; readonly mark: number };

/** A round as far as finding capacity depends on it. */
export type CapacityRound = {
  readonly fleet: Fleet;
  readonly requeue: Requeue;
  readonly reserved: Reserved;
  readonly number: number;
};

/** Finds capacity for requests during one round. It remembers refusals: capacity only shrinks during a round. */
export class FindCapacity {
  readonly #fleet: Fleet;
  readonly #requeue: Requeue;
  readonly #reserved: Reserved;
  readonly #round: number;
  /**
   * How many placements each cluster had when the candidate requests were last looked at, at first when this was made.
   */
  readonly #lookedAt = new Map<ClusterState, number>();

  /** Expects the capacities as they were brought up to date for the round. */
  constructor({ fleet, requeue, reserved, number }: CapacityRound) {
    this.#fleet = fleet;
    this.#requeue = requeue;
    this.#reserved = reserved;
    this.#round = number;
    for (const cluster of fleet.clusters.values()) this.#lookedAt.set(cluster, cluster.free.mark);
  }

  /** Places a request in the fullest cluster that takes it, or only in one. Null: none takes it. */
  place(gangClass: GangClass, gang: PlanGang, request: Request, only?: ClusterState): Placed | null {
    if (this.isClosed(request)) return null;
    const tries: CapacityTry[] = [];
    for (const tried of this.#triesLeft(request)) {
      if ((only === undefined || tried.cluster === only) && mayTake(gangClass, tried) && this.#probeOpen(tried))
        tries.push(tried);
    }
    for (const tried of tries.length < 2 ? tries : ranked(tries, gang, request)) {
      const { mark } = tried.cluster.free;
      if (placeTried(tried)) return { tried, mark };
      this.#note(tried, null);
    }
    return null;
  }

  /**
   * True if some cluster takes a request now. Places nothing. Remembers the cluster that takes it, and the refusals of
   * the others.
   */
  probeCapacity(gangClass: GangClass, request: Request): boolean {
    if (this.isClosed(request)) return false;
    const { lastTry } = request;
    if (lastTry !== null && this.#probe(gangClass, lastTry)) return true;
    for (const tried of request.reopened ?? this.#allTries(request)) if (this.#probe(gangClass, tried)) return true;
    return false;
  }

  /** True if a cluster takes a request now. Remembers the answer. */
  #probe(gangClass: GangClass, tried: CapacityTry): boolean {
    if (!mayTake(gangClass, tried) || this.#isRefused(tried)) return false;
    const { fits, short } = tryCapacity(tried);
    if (fits) tried.request.lastTry = tried;
    else this.#note(tried, short);
    return fits;
  }

  /** True if no cluster has capacity for a request, whatever other pods of its gang take. */
  isClosed({ closedFor }: Request): boolean {
    return closedFor === this.#fleet.clustersVersion;
  }

  /** Closes a request if no cluster has capacity for it now, whatever other pods of its gang take. */
  closeIfFull(request: Request): void {
    // Without the reservations that are charged now, there may be capacity for it.
    if (this.isClosed(request) || request.excluded !== this.#reserved.excluded) return;
    const { lastTry } = request;
    if (lastTry !== null && this.#probeOpen(lastTry)) return;
    let isExact = true;
    for (const tried of request.reopened ?? this.#allTries(request)) {
      if (tried.lacks !== null) continue;
      if (this.#probeOpen(tried)) {
        request.lastTry = tried;
        return;
      }
      isExact &&= tried.short !== null;
    }
    request.lastTry = null;
    if (isExact) this.#close(request);
  }

  /**
   * True if enough pods of each class of a request fit, whatever the others take. Remembers the class of which too few
   * fit.
   */
  #probeOpen(tried: CapacityTry): boolean {
    if (this.#isRefused(tried)) return false;
    const short = shortOf(tried);
    if (short !== null) this.#note(tried, short);
    return short === null;
  }

  /** Lets a gang class wait for capacity for a request that was refused. */
  wait(gangClass: GangClass, request: Request): void {
    if (!this.isClosed(request)) {
      for (const tried of this.#triesOf(gangClass, request)) this.#requeue.capacityWaits.add(tried);
      if (gangClass.excludedClusters.length === 0 && this.isExact(gangClass, request)) this.#close(request);
    }
    waitForCapacity(gangClass, request);
  }

  /**
   * False if the refusal of a request holds for what is free now only: every class of the request alone would fit.
   */
  isExact(gangClass: GangClass, request: Request): boolean {
    if (this.isClosed(request)) return true;
    return this.#triesOf(gangClass, request).every(({ lacks, short }) => lacks !== null || short !== null);
  }

  /** Closes the requests that are candidates for which a round has left no capacity. */
  closeCandidates(): void {
    const moved = new Set<ClusterState>();
    for (const [cluster, mark] of this.#lookedAt) {
      const { free } = cluster;
      if (free.mark === mark) continue;
      moved.add(cluster);
      this.#lookedAt.set(cluster, free.mark);
      free.dropUntouched();
    }
    for (const request of this.#requeue.candidates) {
      const { lastTry } = request;
      // Where nothing was placed since, it is as open as it was.
      if (lastTry !== null && !moved.has(lastTry.cluster)) continue;
      this.closeIfFull(request);
    }
  }

  /** Why each cluster refuses a gang class: some whatever the flavors, the others for each choice of them. */
  blocks(gangClass: GangClass, requests: readonly Request[]): ClusterBlocks {
    return gangClass.excludedClusters.length === 0
      ? this.#fleet.shared(gangClass.shape, requests, () => this.#newBlocks(gangClass, requests))
      : this.#newBlocks(gangClass, requests);
  }

  #newBlocks(gangClass: GangClass, requests: readonly Request[]): ClusterBlocks {
    const blocks: ClusterBlock[] = [];
    for (const { cluster, block } of this.#fleet.clustersFor(gangClass.shape.ask)) {
      const exclusion = gangClass.excludedClusters.includes(cluster.name) ? "Draining" : null;
      const reason = block ?? exclusion;
      if (reason !== null) blocks.push({ cluster: cluster.name, reason, choice: {} });
    }
    for (const request of requests) {
      for (const tried of this.#triesOf(gangClass, request)) blocks.push(blockOf(tried));
    }
    return clusterBlocks(blocks);
  }

  /** The clusters that could take a gang of a class, by name. */
  #triesOf({ excludedClusters }: GangClass, request: Request): readonly CapacityTry[] {
    const tries = this.#allTries(request);
    return excludedClusters.length === 0
      ? tries
      : tries.filter(({ cluster }) => !excludedClusters.includes(cluster.name));
  }

  /** Those that may have capacity for a request, by name. */
  #triesLeft(request: Request): readonly CapacityTry[] {
    const { reopened } = request;
    if (reopened === null) return this.#allTries(request);
    return reopened.length < 2 ? reopened : this.#allTries(request).filter((tried) => reopened.includes(tried));
  }

  #allTries(request: Request): readonly CapacityTry[] {
    const { clustersVersion: version } = this.#fleet;
    if (request.all.version !== version) {
      const open = this.#fleet.clustersFor(request.sized.ask).filter(({ block }) => block === null);
      request.all = { version, tries: open.map(({ cluster, facts }) => tryIn(request, cluster, facts)) };
    }
    return request.all.tries;
  }

  /** True if the round has refused it already, and the capacity has not changed in a way that could matter. */
  #isRefused(tried: CapacityTry): boolean {
    if (tried.watched) return true;
    if (tried.refusedIn !== this.#round) return false;
    return tried.short !== null || tried.refusedAfter === tried.cluster.planned;
  }

  #note(tried: CapacityTry, short: FitClass | null): void {
    tried.refusedIn = this.#round;
    tried.refusedAfter = tried.cluster.planned;
    tried.short = short;
  }

  #close(request: Request): void {
    for (const tried of request.reopened ?? request.tries.values()) this.#requeue.capacityWaits.add(tried);
    request.reopened = [];
    request.closedFor = this.#fleet.clustersVersion;
    if (request.isCandidate) this.#requeue.candidates.drop(request);
    const { candidates } = this.#requeue.quotaWaits;
    if (candidates.size > 0) for (const list of request.lists) if (list.isCandidate) candidates.drop(list);
  }
}

/** False: a cluster takes no gang of a class, whatever its capacity. */
function mayTake({ excludedClusters }: Pick<GangClass, "excludedClusters">, { cluster, lacks }: CapacityTry): boolean {
  return lacks === null && !excludedClusters.includes(cluster.name);
}

/** The clusters of a request, the fullest first; last comes the one where the gang was undone last. */
function ranked(tries: readonly CapacityTry[], gang: PlanGang, request: Request): readonly CapacityTry[] {
  const { resource, demand } = request;
  const all = tries.map((tried) => {
    const { labels, labelsKey, cluster } = tried;
    const late = gang.backoff?.lastCluster === cluster.name ? 1 : 0;
    const full = cluster.free.fullness({ resource, labels, labelsKey }, demand);
    return { tried, late, full };
  });
  return all.sort((a, b) => a.late - b.late || b.full - a.full).map(({ tried }) => tried);
}

function blockOf(tried: CapacityTry): ClusterBlock {
  const { cluster, request } = tried;
  const reason = reasonOf(tried);
  if (tried.block?.reason !== reason) tried.block = { cluster: cluster.name, reason, choice: request.choice };
  return tried.block;
}
