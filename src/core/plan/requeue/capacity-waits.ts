/** The requests that were refused because too few pods of a class fit. They are tried again once more of them do. */
import { firstWhere } from "../../../runtime/first-where.ts";
import { Sweep } from "../../../runtime/sweep.ts";
import type { ClassCounts } from "../capacity/class-counts.ts";
import type { ClusterState } from "../capacity/cluster-state.ts";
import type { FitClass } from "../capacity/fit-classes.ts";
import type { CapacityTry, Request } from "../queues/records.ts";

/** A request in a cluster, and how many pods of a class it needs. */
type Need = { readonly tried: CapacityTry; readonly need: number };

/** The requests that wait for capacity, in every cluster. */
export class CapacityWaits {
  readonly #byCluster = new Map<ClusterState, ClusterWaits>();

  /** Lets a request wait for the class of which too few pods fit its cluster. */
  add(tried: CapacityTry): void {
    this.#in(tried.cluster).add(tried);
  }

  /** Brings a cluster's capacity up to date, and returns the requests that may fit now, some more than once. */
  sync(cluster: ClusterState, keepsSame: boolean): readonly Request[] {
    return this.#in(cluster).wake(cluster.sync(keepsSame));
  }

  /** Stops counting some classes for which no gang waits any more. */
  forgetSome(cluster: ClusterState): void {
    this.#in(cluster).forgetSome();
  }

  /** Lets no request wait any more. */
  clear(): void {
    for (const waits of this.#byCluster.values()) waits.clear();
  }

  #in(cluster: ClusterState): ClusterWaits {
    const waits = this.#byCluster.get(cluster) ?? new ClusterWaits(cluster.counts);
    this.#byCluster.set(cluster, waits);
    return waits;
  }
}

/** The requests that wait for capacity in one cluster. */
export class ClusterWaits {
  readonly #counts: ClassCounts;
  /** Those that need fewest first. Only those that are watched, and short of the class, wait for more of it. */
  readonly #needs = new Map<FitClass, Need[]>();
  readonly #sweep = new Sweep(this.#needs);

  constructor(counts: ClassCounts) {
    this.#counts = counts;
  }

  add(tried: CapacityTry): void {
    if (tried.watched || tried.short === null) return;
    tried.watched = true;
    const { short } = tried;
    const needs = this.#needs.get(short) ?? [];
    this.#needs.set(short, needs);
    const need = needOf(tried, short);
    if (!tried.listed.includes(short)) {
      tried.listed.push(short);
      insert(needs, { tried, need }, (one) => one.need);
    }
    this.#counts.await(short, need);
  }

  /** The requests that wait for no more pods of these classes than fit now. */
  wake(risen: readonly FitClass[]): readonly Request[] {
    return risen.flatMap((fit) => this.#wakeFor(fit));
  }

  #wakeFor(fit: FitClass): readonly Request[] {
    const woken: Request[] = [];
    const needs = this.#needs.get(fit) ?? [];
    const { count, awaited } = this.#counts.numbersOf(fit);
    let at = firstWhere(0, needs.length, (place) => (needs[place] as Need).need >= awaited);
    for (; at < needs.length; at++) {
      const { tried, need } = needs[at] as Need;
      if (need > count) break;
      if (tried.watched && tried.short === fit) woken.push(reopen(tried));
    }
    this.#counts.setAwaited(fit, needs[at]?.need ?? Number.POSITIVE_INFINITY);
    return woken;
  }

  forgetSome(): void {
    for (const [fit, needs] of this.#sweep.next()) {
      const [forgotten, left] = [needs.filter(isForgotten), needs.filter((one) => !isForgotten(one))];
      for (const { tried } of forgotten) stopListing(tried, fit);
      this.#needs.set(fit, left);
      if (left.length > 0) continue;
      this.#needs.delete(fit);
      this.#counts.stop(fit);
    }
  }

  clear(): void {
    for (const [fit, needs] of this.#needs) for (const { tried } of needs) stopListing(tried, fit);
    this.#needs.clear();
    this.#counts.clear();
  }
}

/** True for a request for which no gang waits any more. */
function isForgotten({ tried: { request } }: Need): boolean {
  return request.waiting.size + request.lists.size === 0;
}

/** Forgets that a request was closed, if it waits for this class: what changes in its clusters is not known then. */
function stopListing(tried: CapacityTry, fit: FitClass): void {
  tried.listed.splice(tried.listed.indexOf(fit), 1);
  if (!tried.watched || tried.short !== fit) return;
  tried.watched = false;
  tried.request.reopened = null;
  tried.request.closedFor = -1;
}

/** Lets a request be tried in a cluster again. */
function reopen(tried: CapacityTry): Request {
  const { request } = tried;
  const { reopened } = request;
  tried.watched = false;
  if (reopened?.length === 0) request.reopened = [tried];
  else if (reopened?.includes(tried) === false) reopened.push(tried);
  // The classes of the others may not fit.
  request.lastTry = tried.groups.length === 1 ? tried : null;
  return request;
}

/** How many pods of a class a request asks for. */
function needOf({ groups }: CapacityTry, fit: FitClass): number {
  return groups.find((group) => group.fit === fit)?.count ?? 0;
}

/** Inserts an item after those with the same key in a list that is sorted by it. */
function insert<T>(list: T[], item: T, keyOf: (item: T) => number): void {
  const key = keyOf(item);
  const place = firstWhere(0, list.length, (at) => keyOf(list[at] as T) > key);
  list.splice(place, 0, item);
}
