import { firstWhere } from "../../../runtime/first-where.ts";
import type { ClusterRoom } from "./cluster-room.ts";
import { CountTable } from "./count-table.ts";
import type { FitClass, Rules } from "./fit-classes.ts";
import type { Request, RoomTry } from "./requests.ts";
import { Sweep } from "./sweep.ts";

/** A request in the cluster, and how many pods of a class it needs. */
type Need = { readonly room: RoomTry; readonly need: number };

/** The requests that were refused because too few pods of a class fit. How many fit is in a row of a table. */
type Count = {
  readonly fit: FitClass;
  readonly table: CountTable<Count>;
  row: number;
  /** Those that need fewest first. Only those that are watched, and short of this class, wait for more. */
  needs: Need[];
};

const NEVER = Number.POSITIVE_INFINITY;

const NOT_COUNTED = -1;

/**
 * The numbers of pods that fit a cluster's room, by class. They are kept exactly while nodes change. They belong to the
 * room between rounds; `isEnough` adds what a round has placed since.
 */
export class RoomWatch {
  readonly #room: ClusterRoom;
  readonly #counts = new Map<FitClass, Count>();
  readonly #sweep = new Sweep(this.#counts);
  /** By the rules of the classes, and the columns of what they request. */
  readonly #tables = new Map<Rules, Map<string, CountTable<Count>>>();
  /** Classes that must be looked at again, because a round had placed pods when they were refused. */
  readonly #unsettled = new Set<FitClass>();

  constructor(room: ClusterRoom) {
    this.#room = room;
  }

  /** True if so many pods of a class fit now. */
  isEnough(fit: FitClass, need: number): boolean {
    const known = this.#counts.get(fit);
    if (known === undefined || countOf(known) < 0) return this.#fits(fit, need);
    // Placements only take room, so that too few stay too few.
    if (countOf(known) < need) return false;
    const { touched, slotCount } = this.#room;
    if (touched.length === 0) return true;
    if (!this.#room.mayTake(fit) || touched.length * 2 > slotCount) return this.#fits(fit, need);
    return known.table.countNow(known.row, this.#room) >= need;
  }

  /** The same, by the nodes themselves. */
  #fits(fit: FitClass, need: number): boolean {
    return this.#room.fitting(fit, need) >= need;
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
    const { table, row } = known;
    table.setAwaited(row, Math.min(table.awaitedAt(row), need));
    if (countOf(known) < 0 || need <= countOf(known)) this.#unsettled.add(short);
  }

  /**
   * Brings the numbers up to date with the room, and returns the requests that may fit now, some more than once.
   * `keepsSame`: the round places the same pods as the last one, beside which classes were refused.
   */
  sync({ isStale, keepsSame }: { readonly isStale: boolean; readonly keepsSame: boolean }): readonly Request[] {
    const woken: Request[] = [];
    const met = new Set<Count>();
    if (isStale) {
      const changed = this.#room.changed();
      for (const byColumns of this.#tables.values()) {
        for (const table of byColumns.values()) table.move(this.#room, changed, met);
      }
    }
    if (!keepsSame) this.#settle(met);
    this.#room.remember();
    for (const count of met) wake(count, woken);
    return woken;
  }

  #settle(met: Set<Count>): void {
    for (const fit of this.#unsettled) {
      const known = this.#counts.get(fit);
      if (known === undefined) continue;
      const { table, row } = known;
      if (table.countAt(row) < 0) table.setCount(row, this.#room.fitting(fit, Number.POSITIVE_INFINITY));
      if (table.awaitedAt(row) <= table.countAt(row)) met.add(known);
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
      count.table.remove(count);
    }
  }

  /** Watches for nothing any more. */
  clear(): void {
    for (const [fit, { needs }] of this.#counts) for (const { room } of needs) stopListing(room, fit);
    this.#counts.clear();
    this.#tables.clear();
    this.#unsettled.clear();
  }

  #start(fit: FitClass): Count {
    const table = this.#tableOf(fit);
    const count: Count = { fit, table, row: -1, needs: [] };
    table.add(count, fit, NOT_COUNTED);
    this.#counts.set(fit, count);
    return count;
  }

  #tableOf(fit: FitClass): CountTable<Count> {
    const byColumns = this.#tables.get(fit.rules) ?? new Map<string, CountTable<Count>>();
    this.#tables.set(fit.rules, byColumns);
    const key = fit.columns.join();
    const table = byColumns.get(key) ?? new CountTable<Count>(fit);
    byColumns.set(key, table);
    return table;
  }
}

function countOf({ table, row }: Count): number {
  return table.countAt(row);
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
function wake({ fit, table, row, needs }: Count, woken: Request[]): void {
  const [count, awaited] = [table.countAt(row), table.awaitedAt(row)];
  let at = firstWhere(0, needs.length, (place) => (needs[place] as Need).need >= awaited);
  for (; at < needs.length; at++) {
    const { room, need } = needs[at] as Need;
    if (need > count) break;
    if (room.watched && room.short === fit) woken.push(reopen(room));
  }
  table.setAwaited(row, needs[at]?.need ?? NEVER);
}

/** Lets a request be tried in a cluster again. */
function reopen(room: RoomTry): Request {
  const { request } = room;
  const { reopened } = request;
  room.watched = false;
  if (reopened?.length === 0) request.reopened = [room];
  else if (reopened?.includes(room) === false) reopened.push(room);
  // The classes of the others may not fit.
  request.lastRoom = room.groups.length === 1 ? room : null;
  return request;
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
