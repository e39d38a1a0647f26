import { firstWhere } from "../../../runtime/first-where.ts";
import type { ClusterRoom } from "./cluster-room.ts";
import type { FitClass, Rules } from "./fit-classes.ts";
import type { Request, RoomTry } from "./requests.ts";
import { Sweep } from "./sweep.ts";

/** A request in the cluster, and how many pods of a class it needs. */
type Need = { readonly room: RoomTry; readonly need: number };

/** The number of pods of one class that fit, and the requests that were refused because it was too small. */
type Count = {
  readonly fit: FitClass;
  /** The amount that a pod requests of its scarcest resource. */
  readonly least: number;
  /** -1: not known. */
  count: number;
  /** How many fit beside what a round has placed, in the state of the room in which it was asked last. */
  now: { readonly count: number; readonly state: number };
  /** Those that need fewest first. Only those that are watched, and short of this class, wait for more. */
  needs: Need[];
  /** Those that wait need this many at least. Infinite: none waits. */
  awaited: number;
};

const NEVER = Number.POSITIVE_INFINITY;

const UNKNOWN = { count: 0, state: -1 };

/** Counts of classes with the same rules and the same scarcest resource; those that request least of it first. */
type CountGroup = { readonly rules: Rules; readonly column: number; readonly counts: Count[] };

/** A node that has changed: whether rules did allow and do allow it, and the most that it had or has of a column. */
type ChangedSlot = { readonly slot: number; readonly was: boolean; readonly is: boolean; readonly most: number };

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
    if (known.now.state !== this.#room.state) known.now = this.#countNow(known);
    return known.now.count >= need;
  }

  #countNow({ fit, count }: Count): Count["now"] {
    const { touched, state } = this.#room;
    return { count: touched.reduce((sum, slot) => sum + this.#room.gained(fit, slot), count), state };
  }

  /** Watches for the class of which too few pods fit. */
  add(room: RoomTry): void {
    if (room.watched || room.short === null) return;
    room.watched = true;
    const { short } = room;
    const known = this.#counts.get(short) ?? this.#start(short);
    const need = needOf(room, short);
    if (!room.listed.includes(short)) {
      room.listed.push(short);
      insert(known.needs, { room, need }, (one) => one.need);
    }
    known.awaited = Math.min(known.awaited, need);
    if (known.count < 0 || need <= known.count) this.#unsettled.add(short);
  }

  /**
   * Brings the numbers up to date with the room, and returns the requests that may fit now, some more than once.
   * `keepsSame`: the round places the same pods as the last one, beside which classes were refused.
   */
  sync({ isStale, keepsSame }: { readonly isStale: boolean; readonly keepsSame: boolean }): readonly Request[] {
    const woken: Request[] = [];
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
      const [forgotten, needs] = [count.needs.filter(isForgotten), count.needs.filter((one) => !isForgotten(one))];
      for (const { room } of forgotten) stopListing(room, fit);
      count.needs = needs;
      if (needs.length > 0) continue;
      this.#counts.delete(fit);
      const { counts } = this.#groupOf(fit);
      counts.splice(counts.indexOf(count), 1);
    }
  }

  /** Watches for nothing any more. */
  clear(): void {
    for (const [fit, { needs }] of this.#counts) for (const { room } of needs) stopListing(room, fit);
    this.#counts.clear();
    this.#groups.clear();
    this.#unsettled.clear();
  }

  #start(fit: FitClass): Count {
    const count: Count = { fit, least: fit.amounts[0] ?? 0, count: -1, now: UNKNOWN, needs: [], awaited: NEVER };
    this.#counts.set(fit, count);
    insert(this.#groupOf(fit).counts, count, ({ least }) => least);
    return count;
  }

  #groupOf({ rules, columns: [column = -1] }: FitClass): CountGroup {
    const byColumn = this.#groups.get(rules) ?? new Map<number, CountGroup>();
    this.#groups.set(rules, byColumn);
    const group = byColumn.get(column) ?? { rules, column, counts: [] };
    byColumn.set(column, group);
    return group;
  }

  /** Adds to each count of a group what the changed nodes take more of it than before. */
  #moveGroup({ rules, column, counts }: CountGroup, changed: readonly number[], moved: Set<Count>): void {
    const slots = this.#slotsOf(rules, column, changed);
    const most = slots.reduce((max, one) => Math.max(max, one.most), -1);
    for (const count of counts) {
      if (count.least > most) break;
      const hasGained = count.count >= 0 && this.#move(count, slots);
      if (hasGained && count.awaited <= count.count) moved.add(count);
    }
  }

  /** True if some node takes more pods than before, also if others take fewer. */
  #move(count: Count, slots: readonly ChangedSlot[]): boolean {
    let hasGained = false;
    for (const one of slots) {
      if (count.least > one.most) continue;
      const more = this.#room.gainedOn(count.fit, one.slot, one);
      count.count += more;
      hasGained ||= more > 0;
    }
    return hasGained;
  }

  /** The changed nodes that rules allow, or did, and the most that each has or had of a column. */
  #slotsOf(rules: Rules, column: number, changed: readonly number[]): readonly ChangedSlot[] {
    const slots: ChangedSlot[] = [];
    for (const slot of changed) {
      const was = this.#room.allowedBefore(rules, slot);
      const is = this.#room.allowedNow(rules, slot);
      if (was || is) slots.push({ slot, was, is, most: this.#room.mostOf(column, slot) });
    }
    return slots;
  }
}

/** True for a request for which no gang waits any more. */
function isForgotten({ room: { request } }: Need): boolean {
  return request.waiting.size + request.lists.size === 0;
}

/** Forgets that a request was closed, if it waits for this class: what changes in its clusters is not known then. */
function stopListing(room: RoomTry, fit: FitClass): void {
  room.listed.splice(room.listed.indexOf(fit), 1);
  if (!room.watched || room.short !== fit) return;
  room.watched = false;
  room.request.reopened = null;
  room.request.closedFor = -1;
}

/** Wakes the requests that wait for no more pods than fit now. */
function wake(moved: Count, woken: Request[]): void {
  const { fit, count, needs, awaited } = moved;
  let at = firstWhere(0, needs.length, (place) => (needs[place] as Need).need >= awaited);
  for (; at < needs.length; at++) {
    const { room, need } = needs[at] as Need;
    if (need > count) break;
    if (!room.watched || room.short !== fit) continue;
    const { request } = room;
    room.watched = false;
    if (request.reopened?.includes(room) === false) request.reopened.push(room);
    // The classes of the others may not fit.
    request.lastRoom = room.groups.length === 1 ? room : null;
    woken.push(request);
  }
  moved.awaited = needs[at]?.need ?? NEVER;
}

/** How many pods of a class a request asks for. */
function needOf({ groups }: RoomTry, fit: FitClass): number {
  return groups.find((group) => group.fit === fit)?.count ?? 0;
}

/** Inserts an item after those with the same key in a list that is sorted by it. */
function insert<T>(list: T[], item: T, keyOf: (item: T) => number): void {
  const key = keyOf(item);
  const place = firstWhere(0, list.length, (at) => keyOf(list[at] as T) > key);
  list.splice(place, 0, item);
}
