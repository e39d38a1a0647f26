import { usesOne } from "../preempt/candidates.ts";
import { isWithinQuota } from "./branch-use.ts";
import { ClusterRoom } from "./cluster-room.ts";
import type { ClusterState } from "./cluster-state.ts";
import type { FitClass } from "./fit-classes.ts";
import { liftedKey } from "./kept-room.ts";
import type { RoomTry } from "./requests.ts";
import type { Runner, Runners } from "./runners.ts";
import type { Parts } from "./state-parts.ts";

/** A cluster's room without the gangs that are `gone`, how many pods of each class fit it, and which requests. */
type Most = {
  readonly room: ClusterRoom;
  readonly gone: Set<Runner>;
  readonly counts: Map<FitClass, number>;
  readonly fits: Map<RoomTry, boolean>;
};

/** So often at most is the room made anew for other reservations that are lifted. Beyond that it says nothing. */
const VARIANTS_MAX = 4;

/**
 * The most room that clusters can get during one round for gangs that preempt others: everything leaves that leaves
 * anyway or was chosen, or that borrows quota, so that it may give way to other queues. It errs on the side of more
 * room: it counts neither admissions of the round, nor who may give way to whom.
 */
export class MostRoom {
  readonly #parts: Parts;
  readonly #runners: Runners;
  /** Gone in each cluster beside the gangs that borrow. */
  readonly #gone: Set<Runner>;
  /** By the reservations that are lifted. */
  readonly #variants = new Map<string, Map<ClusterState, Most>>();
  /** The pools of which queues borrowed at some moment of the round. Null: not known yet. */
  #borrowed: Map<string, Set<string>> | null = null;

  constructor(parts: Parts, runners: Runners) {
    this.#parts = parts;
    this.#runners = runners;
    this.#gone = new Set(runners.leaving());
  }

  /** Those clusters in which a request may fit, also if these gangs are gone, too. It surely fits in no other. */
  roomsWith(rooms: readonly RoomTry[], own: readonly Runner[]): readonly RoomTry[] {
    const key = liftedKey(this.#parts.kept);
    const clusters = this.#variants.get(key) ?? new Map<ClusterState, Most>();
    if (clusters.size === 0 && this.#variants.size >= VARIANTS_MAX) return rooms;
    this.#variants.set(key, clusters);
    return rooms.filter((room) => this.#mayFit(clusters, room, own));
  }

  #mayFit(clusters: Map<ClusterState, Most>, tried: RoomTry, own: readonly Runner[]): boolean {
    const { cluster } = tried;
    const most = clusters.get(cluster) ?? this.#make(cluster);
    clusters.set(cluster, most);
    const here = own.filter((gang) => gang.admission.cluster === cluster.name && !most.gone.has(gang));
    if (here.length > 0) return this.#fitsWithout(most, tried, here);
    const known = most.fits.get(tried);
    if (known !== undefined) return known;
    const fits = tried.groups.every(({ fit, count }) => countOf(most, fit) >= count);
    most.fits.set(tried, fits);
    return fits;
  }

  #fitsWithout(most: Most, { groups }: RoomTry, gone: readonly Runner[]): boolean {
    const { room } = most;
    const { mark } = room;
    for (const gang of gone) this.#free(most, gang);
    const slots = new Set(room.placedAfter(mark).map(({ slot }) => slot));
    const fits = groups.every(({ fit, count }) => {
      let fitting = countOf(most, fit);
      for (const slot of slots) fitting += room.gained(fit, slot);
      return fitting >= count;
    });
    room.undo(mark);
    return fits;
  }

  /** Notes which queues borrow in the state of use that holds now. */
  noteBorrowed(): void {
    if (this.#borrowed === null) return;
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
    const all = [...this.#variants.values()].flatMap((clusters) => [...clusters]);
    for (const gang of gangs) {
      for (const [cluster, most] of all) {
        if (gang.admission.cluster !== cluster.name || most.gone.has(gang)) continue;
        most.gone.add(gang);
        this.#free(most, gang);
        settle(most);
      }
    }
  }

  #make(cluster: ClusterState): Most {
    this.#borrowed ??= this.#findBorrowed();
    const room = new ClusterRoom(cluster.room.fits);
    for (const node of cluster.room.nodesNow()) room.setNode(node.name, node);
    room.reset();
    const most: Most = { room, gone: new Set(), counts: new Map(), fits: new Map() };
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

function countOf({ room, counts }: Most, fit: FitClass): number {
  const known = counts.get(fit) ?? room.fitting(fit, Number.POSITIVE_INFINITY);
  counts.set(fit, known);
  return known;
}

/** The gangs that are gone by now count as gone from the begin. */
function settle({ room, counts, fits }: Most): void {
  room.remember();
  counts.clear();
  fits.clear();
}
