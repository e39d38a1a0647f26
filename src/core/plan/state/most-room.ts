import { usesOne } from "../preempt/candidates.ts";
import { isWithinQuota } from "./branch-use.ts";
import type { ClusterRoom } from "./cluster-room.ts";
import type { ClusterState } from "./cluster-state.ts";
import type { FitClass } from "./fit-classes.ts";
import type { FitGroup } from "./place-all.ts";
import type { RoomTry } from "./requests.ts";
import type { Runner, Runners } from "./runners.ts";
import type { Parts } from "./state-parts.ts";

/**
 * A cluster's room without the gangs that are `gone`, and how many pods of each class fit it at least. The room only
 * grows.
 */
type Most = {
  readonly room: ClusterRoom;
  readonly gone: Set<Runner>;
  /** Moves when the room grows. */
  version: number;
  readonly counts: Map<FitClass, Count>;
};

/** How many pods fit at least, and the version of the room in which no more do; -1: more may. */
type Count = { readonly least: number; readonly exactIn: number };

/**
 * The most room that clusters can get for gangs that preempt others, for as long as the same gangs run: everything
 * leaves that leaves anyway or was chosen, or that borrows quota, so that it may give way to other queues. It errs on
 * the side of more room: it counts neither what rounds place or keep, nor who may give way to whom.
 */
export class MostRoom {
  readonly #parts: Parts;
  readonly #runners: Runners;
  /** Gone in each cluster beside the gangs that borrow. */
  readonly #gone: Set<Runner>;
  readonly #clusters = new Map<ClusterState, Most>();
  /** The pools of which queues borrowed at some moment since the same gangs run. */
  readonly #borrowed = new Map<string, Set<string>>();

  constructor(parts: Parts, runners: Runners) {
    this.#parts = parts;
    this.#runners = runners;
    this.#gone = new Set(runners.leaving());
  }

  /** Those clusters in which a request may fit, also if these gangs are gone, too. It surely fits in no other. */
  roomsWith(rooms: readonly RoomTry[], own: readonly Runner[]): readonly RoomTry[] {
    return rooms.filter((room) => this.#mayFit(room, own));
  }

  #mayFit(tried: RoomTry, own: readonly Runner[]): boolean {
    const { cluster } = tried;
    const most = this.#clusters.get(cluster) ?? this.#make(cluster);
    this.#clusters.set(cluster, most);
    const short = tried.groups.filter(({ fit, count }) => countOf(most, fit, count) < count);
    if (short.length === 0) return true;
    const here = own.filter((gang) => gang.admission.cluster === cluster.name && !most.gone.has(gang));
    return here.length > 0 && this.#fitWithout(most, short, here);
  }

  /** True if groups fit that do not, once more gangs are gone. */
  #fitWithout(most: Most, short: readonly FitGroup[], gone: readonly Runner[]): boolean {
    const { room } = most;
    const { mark } = room;
    for (const gang of gone) this.#free(most, gang);
    const slots = new Set(room.placedAfter(mark).map(({ slot }) => slot));
    const fit = short.every(({ fit, count }) => {
      let fitting = countOf(most, fit, count);
      for (const slot of slots) fitting += room.gained(fit, slot);
      return fitting >= count;
    });
    room.undo(mark);
    return fit;
  }

  /** Notes which queues borrow in the state of use that holds now. */
  noteBorrowed(): void {
    for (const [queue, pools] of this.#findBorrowed()) {
      const borrowed = this.#borrowed.get(queue) ?? new Set<string>();
      this.#borrowed.set(queue, borrowed);
      const more = [...pools].filter((pool) => !borrowed.has(pool));
      for (const pool of more) borrowed.add(pool);
      if (more.length > 0) this.#letGo(this.#runners.staying(queue).filter((gang) => usesOne(gang, more)));
    }
  }

  /** Notes that gangs leave. */
  noteGone(gangs: Iterable<Runner>): void {
    for (const gang of gangs) this.#gone.add(gang);
    this.#letGo(gangs);
  }

  #letGo(gangs: Iterable<Runner>): void {
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
    const { most: room } = cluster;
    room.becomeRemembered(cluster.room);
    const most: Most = { room, gone: new Set(), version: 0, counts: new Map() };
    const borrowing = [...this.#borrowed].flatMap(([queue, pools]) =>
      this.#runners.inCluster(cluster.name, queue).filter((gang) => usesOne(gang, pools)),
    );
    const leaving = [...this.#gone].filter(({ admission }) => admission.cluster === cluster.name);
    for (const gang of new Set([...borrowing, ...leaving])) {
      most.gone.add(gang);
      this.#free(most, gang);
    }
    settle(most);
    return most;
  }

  /** What a reservation keeps counts as used by its queue, whether or not it is lifted now. */
  #findBorrowed(): Map<string, Set<string>> {
    const { quota, lines, kept } = this.#parts;
    const borrowed = new Map<string, Set<string>>();
    for (const queue of lines.lines.keys()) {
      const leaf = quota.branches.leaf(queue);
      const pools = leaf === null ? [] : [...leaf.pools.keys()].filter((pool) => !isWithinQuota(quota, leaf, [pool]));
      if (pools.length > 0) borrowed.set(queue, new Set(pools));
    }
    for (const { entry, wants } of kept) {
      const pools = borrowed.get(entry.account.queue) ?? new Set<string>();
      borrowed.set(entry.account.queue, pools);
      for (const pool of wants.keys()) pools.add(pool);
    }
    return borrowed;
  }

  #free({ room }: Most, gang: Runner): void {
    const cluster = this.#parts.clusters.get(gang.admission.cluster ?? "");
    if (cluster === undefined) return;
    for (const { node, fit } of this.#runners.podsOf(cluster, gang)) room.shift(node, fit, -1);
  }
}

/** How many pods of a class fit before gangs are taken off for a moment: exact if they are fewer than `enough`. */
function countOf(most: Most, fit: FitClass, enough: number): number {
  const known = most.counts.get(fit);
  if (known !== undefined && (known.least >= enough || known.exactIn === most.version)) return known.least;
  const least = most.room.fitting(fit, enough);
  most.counts.set(fit, { least, exactIn: least < enough ? most.version : -1 });
  return least;
}

/** The gangs that are gone by now count as gone from the begin. */
function settle(most: Most): void {
  most.room.remember();
  most.version += 1;
}
