import type { ClusterState } from "../capacity/cluster-state.ts";
import type { FitClass } from "../capacity/fit-classes.ts";
import type { FreeCapacity } from "../capacity/free-capacity.ts";
import type { FitGroup } from "../capacity/place-all.ts";
import type { Fleet } from "../fit/fleet.ts";
import type { CapacityTry, ReservedCapacity, RunningAdmission } from "../queues/records.ts";
import { isWithinQuota } from "../usage/branch-use.ts";
import { usesOne } from "../victims/candidates.ts";
import type { RunningAdmissions } from "./running-admissions.ts";

/**
 * A cluster's capacity without the gangs that are `gone`, and how many pods of each class fit it at least. The capacity
 * only grows.
 */
type Most = {
  readonly free: FreeCapacity;
  readonly gone: Set<RunningAdmission>;
  /** Moves when the capacity grows. */
  version: number;
  readonly counts: Map<FitClass, Count>;
};

/** How many pods fit at least, and the version of the capacity in which no more do; -1: more may. */
type Count = { readonly least: number; readonly exactIn: number };

/**
 * The most capacity that clusters can get for gangs that preempt others, for as long as the same gangs run: everything
 * leaves that leaves anyway or was chosen, or that borrows quota, so that it may be preempted for other queues. It errs
 * on the side of more capacity: it counts neither what rounds place or keep, nor who may be preempted for whom.
 */
export class MostCapacity {
  readonly #fleet: Fleet;
  readonly #runningAdmissions: RunningAdmissions;
  /** Gone in each cluster beside the gangs that borrow. */
  readonly #gone: Set<RunningAdmission>;
  readonly #clusters = new Map<ClusterState, Most>();
  /** The pools of which queues borrowed at some moment since the same gangs run. */
  readonly #borrowed = new Map<string, Set<string>>();

  constructor(fleet: Fleet, runningAdmissions: RunningAdmissions) {
    this.#fleet = fleet;
    this.#runningAdmissions = runningAdmissions;
    this.#gone = new Set(runningAdmissions.leaving());
  }

  /** Those clusters in which a request may fit, also if these gangs are gone, too. It surely fits in no other. */
  triesWith(tries: readonly CapacityTry[], own: readonly RunningAdmission[]): readonly CapacityTry[] {
    return tries.filter((tried) => this.#mayFit(tried, own));
  }

  #mayFit(tried: CapacityTry, own: readonly RunningAdmission[]): boolean {
    const { cluster } = tried;
    const most = this.#clusters.get(cluster) ?? this.#make(cluster);
    this.#clusters.set(cluster, most);
    const short = tried.groups.filter(({ fit, count }) => countOf(most, fit, count) < count);
    if (short.length === 0) return true;
    const here = own.filter((gang) => gang.admission.cluster === cluster.name && !most.gone.has(gang));
    return here.length > 0 && this.#fitWithout(most, short, here);
  }

  /** True if groups fit that do not, once more gangs are gone. */
  #fitWithout(most: Most, short: readonly FitGroup[], gone: readonly RunningAdmission[]): boolean {
    const { free } = most;
    const { mark } = free;
    for (const gang of gone) this.#free(most, gang);
    const slots = new Set(free.placedAfter(mark).map(({ slot }) => slot));
    const fit = short.every(({ fit, count }) => {
      let fitting = countOf(most, fit, count);
      for (const slot of slots) fitting += free.gained(fit, slot);
      return fitting >= count;
    });
    free.undo(mark);
    return fit;
  }

  /** Records which queues borrow in the state of use that holds now, beside what the round keeps for reservations. */
  noteBorrowed(kept: readonly ReservedCapacity[]): void {
    for (const [queue, pools] of this.#findBorrowed(kept)) {
      const borrowed = this.#borrowed.get(queue) ?? new Set<string>();
      this.#borrowed.set(queue, borrowed);
      const more = [...pools].filter((pool) => !borrowed.has(pool));
      for (const pool of more) borrowed.add(pool);
      if (more.length > 0) this.#letGo(this.#runningAdmissions.staying(queue).filter((gang) => usesOne(gang, more)));
    }
  }

  /** Records that gangs leave. */
  noteGone(gangs: Iterable<RunningAdmission>): void {
    for (const gang of gangs) this.#gone.add(gang);
    this.#letGo(gangs);
  }

  #letGo(gangs: Iterable<RunningAdmission>): void {
    const grown = new Set<Most>();
    for (const gang of gangs) {
      for (const [cluster, most] of this.#clusters) {
        if (gang.admission.cluster !== cluster.name || most.gone.has(gang)) continue;
        most.gone.add(gang);
        this.#free(most, gang);
        grown.add(most);
      }
    }
    grown.forEach(settle);
  }

  #make(cluster: ClusterState): Most {
    const { most: free } = cluster;
    free.becomeRemembered(cluster.free);
    const most: Most = { free, gone: new Set(), version: 0, counts: new Map() };
    const borrowing = [...this.#borrowed].flatMap(([queue, pools]) =>
      this.#runningAdmissions.inCluster(cluster.name, queue).filter((gang) => usesOne(gang, pools)),
    );
    const leaving = [...this.#gone].filter(({ admission }) => admission.cluster === cluster.name);
    for (const gang of new Set([...borrowing, ...leaving])) {
      most.gone.add(gang);
      this.#free(most, gang);
    }
    settle(most);
    return most;
  }

  /** What a reservation keeps counts as used by its queue, whether or not it is excluded now. */
  #findBorrowed(kept: readonly ReservedCapacity[]): Map<string, Set<string>> {
    const { quota, queues } = this.#fleet;
    const borrowed = new Map<string, Set<string>>();
    for (const queue of queues.all.keys()) {
      const leaf = quota.branches.leaf(queue);
      const pools = leaf === null ? [] : [...leaf.pools.keys()].filter((pool) => !isWithinQuota(quota, leaf, [pool]));
      if (pools.length > 0) borrowed.set(queue, new Set(pools));
    }
    for (const { gang, requested } of kept) {
      const pools = borrowed.get(gang.account.queue) ?? new Set<string>();
      borrowed.set(gang.account.queue, pools);
      for (const pool of requested.keys()) pools.add(pool);
    }
    return borrowed;
  }

  #free({ free }: Most, gang: RunningAdmission): void {
    const cluster = this.#fleet.clusters.get(gang.admission.cluster ?? "");
    if (cluster === undefined) return;
    for (const { node, fit } of this.#runningAdmissions.podsOf(cluster, gang)) free.shift(node, fit, -1);
  }
}

/** How many pods of a class fit before gangs are taken off for a moment: exact if they are fewer than `enough`. */
function countOf(most: Most, fit: FitClass, enough: number): number {
  const known = most.counts.get(fit);
  if (known !== undefined && (known.least >= enough || known.exactIn === most.version)) return known.least;
  const least = most.free.fitting(fit, enough);
  most.counts.set(fit, { least, exactIn: least < enough ? most.version : -1 });
  return least;
}

/** The gangs that are gone by now count as gone from the begin. */
function settle(most: Most): void {
  most.free.remember();
  most.version += 1;
}
