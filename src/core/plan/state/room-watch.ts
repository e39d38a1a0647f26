import type { ClusterRoom } from "./cluster-room.ts";
import type { FitClass, Rules } from "./fit-classes.ts";
import type { Request, RoomTry } from "./requests.ts";
import { Sweep } from "./sweep.ts";

/** The number of pods of one class that fit, and the refused requests that wait for more. */
type Count = {
  readonly fit: FitClass;
  /** The amount that a pod requests of its scarcest resource. */
  readonly least: number;
  /** -1: not known. */
  count: number;
  /** The number of pods that each of them needs. */
  readonly tries: Map<RoomTry, number>;
};

/** Counts of classes with the same rules and the same scarcest resource; those that request least of it first. */
type CountGroup = { readonly rules: Rules; readonly column: number; readonly counts: Count[] };

/**
 * The numbers of pods that fit a cluster's room, by class. They are kept exactly while nodes change. They belong to the
 * room between rounds; `isEnough` adds what a round has placed since.
 */
export class RoomWatch {
  readonly #room: ClusterRoom;
  readonly #counts = new Map<FitClass, Count>();
  readonly #sweep = new Sweep(this.#counts);
  readonly #groups = new Map<Rules, Map<number, CountGroup>>();
  /** Classes that must be looked at again, because a round had placed pods when they were refused. */
  readonly #unsettled = new Set<FitClass>();

  constructor(room: ClusterRoom) {
    this.#room = room;
  }

  /** True if so many pods of a class fit now. */
  isEnough(fit: FitClass, need: number): boolean {
    if (!this.#room.mayTake(fit)) return need <= 0;
    const known = this.#counts.get(fit);
    const { touched, slotCount } = this.#room;
    if (known === undefined || known.count < 0) return this.#room.fitting(fit, need) >= need;
    // Placements only take room, so that too few stay too few.
    if (known.count < need) return false;
    if (touched.length * 2 > slotCount) return this.#room.fitting(fit, need) >= need;
    let { count } = known;
    for (const slot of touched) count += this.#room.gained(fit, slot);
    return count >= need;
  }

  /** Watches for the class of which too few pods fit. */
  add(room: RoomTry): void {
    if (room.watched || room.short === null) return;
    room.watched = true;
    const known = this.#counts.get(room.short) ?? this.#start(room.short);
    const need = needOf(room, room.short);
    known.tries.set(room, need);
    if (known.count < 0 || need <= known.count) this.#unsettled.add(room.short);
  }

  /**
   * Brings the numbers up to date with the room, and returns the requests that may fit now. `keepsSame`: the round
   * places the same pods as the last one, beside which classes were refused.
   */
  sync({ isStale, keepsSame }: { readonly isStale: boolean; readonly keepsSame: boolean }): ReadonlySet<Request> {
    const woken = new Set<Request>();
    const moved = new Set<Count>();
    if (isStale) {
      const changed = this.#room.changed();
      for (const columns of this.#groups.values()) {
        for (const group of columns.values()) this.#moveGroup(group, changed, moved);
      }
    }
    if (!keepsSame) this.#settle(moved);
    this.#room.remember();
    for (const count of moved) wake(count, woken);
    return woken;
  }

  #settle(moved: Set<Count>): void {
    for (const fit of this.#unsettled) {
      const count = this.#counts.get(fit);
      if (count === undefined) continue;
      if (count.count < 0) count.count = this.#room.fitting(fit, Number.POSITIVE_INFINITY);
      moved.add(count);
    }
    this.#unsettled.clear();
  }

  /** Stops counting some classes for which no gang waits any more. */
  forgetSome(): void {
    for (const [fit, count] of this.#sweep.next()) {
      const { tries } = count;
      for (const one of tries.keys()) {
        if (one.request.waiting.size + one.request.lists.size > 0) continue;
        tries.delete(one);
        stopWatching(one);
        one.request.closedFor = -1;
      }
      if (tries.size > 0) continue;
      this.#counts.delete(fit);
      const { counts } = this.#groupOf(fit);
      counts.splice(counts.indexOf(count), 1);
    }
  }

  /** Watches for nothing any more. */
  clear(): void {
    for (const { tries } of this.#counts.values()) for (const one of tries.keys()) stopWatching(one);
    this.#counts.clear();
    this.#groups.clear();
    this.#unsettled.clear();
  }

  #start(fit: FitClass): Count {
    const count: Count = { fit, least: fit.amounts[0] ?? 0, count: -1, tries: new Map() };
    this.#counts.set(fit, count);
    insert(this.#groupOf(fit).counts, count);
    return count;
  }

  #groupOf({ rules, columns: [column = -1] }: FitClass): CountGroup {
    const byColumn = this.#groups.get(rules) ?? new Map<number, CountGroup>();
    this.#groups.set(rules, byColumn);
    const group = byColumn.get(column) ?? { rules, column, counts: [] };
    byColumn.set(column, group);
    return group;
  }

  #moveGroup(group: CountGroup, changed: readonly number[], moved: Set<Count>): void {
    for (const slot of changed) {
      const was = this.#room.allowedBefore(group.rules, slot);
      const is = this.#room.allowedNow(group.rules, slot);
      if (was || is) this.#moveCounts(group, { slot, was, is }, moved);
    }
  }

  /** Adds to each count what a node takes more of it than before. */
  #moveCounts(
    { column, counts }: CountGroup,
    { slot, was, is }: { readonly slot: number; readonly was: boolean; readonly is: boolean },
    moved: Set<Count>,
  ): void {
    const most = this.#room.mostOf(column, slot);
    for (const count of counts) {
      if (count.least > most) break;
      if (count.count < 0) continue;
      const more = this.#room.gainedOn(count.fit, slot, { was, is });
      count.count += more;
      if (more > 0) moved.add(count);
    }
  }
}

/** Forgets that a request was closed: what changes in its clusters is not known from now on. */
function stopWatching(room: RoomTry): void {
  room.watched = false;
  room.request.reopened = null;
}

function wake(count: Count, woken: Set<Request>): void {
  count.tries.forEach((need, one) => {
    if (need > count.count) return;
    count.tries.delete(one);
    one.watched = false;
    one.request.reopened?.add(one);
    // The classes of the others may not fit.
    one.request.lastRoom = one.groups.length === 1 ? one : null;
    woken.add(one.request);
  });
}

/** How many pods of a class a request asks for. */
function needOf({ groups }: RoomTry, fit: FitClass): number {
  return groups.find((group) => group.fit === fit)?.count ?? 0;
}

function insert(counts: Count[], count: Count): void {
  let [low, high] = [0, counts.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((counts[middle] as Count).least <= count.least) low = middle + 1;
    else high = middle;
  }
  counts.splice(low, 0, count);
}
