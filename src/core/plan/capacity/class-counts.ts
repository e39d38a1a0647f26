import { CountTable } from "./count-table.ts";
import type { FitClass, Rules } from "./fit-classes.ts";
import type { FreeCapacity } from "./free-capacity.ts";

/** A class, and how many pods of it fit, in a row of a table. */
type Count = { readonly fit: FitClass; readonly table: CountTable<Count>; row: number };

const NOT_COUNTED = -1;

/**
 * The numbers of pods that fit a cluster's capacity, by class. They are kept exactly while nodes change. They belong to
 * the capacity between rounds; `isEnough` adds what a round has placed since.
 */
export class ClassCounts {
  readonly #free: FreeCapacity;
  readonly #counts = new Map<FitClass, Count>();
  /** By the rules of the classes, and the columns of what they request. */
  readonly #tables = new Map<Rules, Map<string, CountTable<Count>>>();
  /** Classes that must be looked at again, because a round had placed pods when they were refused. */
  readonly #unsettled = new Set<FitClass>();

  constructor(free: FreeCapacity) {
    this.#free = free;
  }

  /** True if so many pods of a class fit now. */
  isEnough(fit: FitClass, need: number): boolean {
    const known = this.#counts.get(fit);
    if (known === undefined || countOf(known) < 0) return this.#fits(fit, need);
    // Placements only take capacity, so that too few stay too few.
    if (countOf(known) < need) return false;
    const { touched, slotCount } = this.#free;
    if (touched.length === 0) return true;
    if (!this.#free.mayTake(fit) || touched.length * 2 > slotCount) return this.#fits(fit, need);
    return known.table.countNow(known.row, this.#free) >= need;
  }

  /** The same, by the nodes themselves. */
  #fits(fit: FitClass, need: number): boolean {
    return this.#free.fitting(fit, need) >= need;
  }

  /** Counts a class from now on. `sync` names it once so many pods of it fit, or as many as are awaited already. */
  await(fit: FitClass, need: number): void {
    const known = this.#counts.get(fit) ?? this.#start(fit);
    const { table, row } = known;
    table.setAwaited(row, Math.min(table.awaitedAt(row), need));
    if (countOf(known) < 0 || need <= countOf(known)) this.#unsettled.add(fit);
  }

  /** How many pods of a counted class fit, and how many are awaited. */
  numbersOf(fit: FitClass): { readonly count: number; readonly awaited: number } {
    const { table, row } = this.#counts.get(fit) as Count;
    return { count: table.countAt(row), awaited: table.awaitedAt(row) };
  }

  /** Awaits another number of pods of a counted class. Infinite: none. */
  setAwaited(fit: FitClass, awaited: number): void {
    const { table, row } = this.#counts.get(fit) as Count;
    table.setAwaited(row, awaited);
  }

  /**
   * Brings the numbers up to date with the capacity, and returns the classes of which enough pods may fit now.
   * `keepsSame`: the round places the same pods as the last one, beside which classes were refused.
   */
  sync({ isStale, keepsSame }: { readonly isStale: boolean; readonly keepsSame: boolean }): readonly FitClass[] {
    const risen = new Set<Count>();
    if (isStale) {
      const changed = this.#free.changed();
      for (const byColumns of this.#tables.values()) {
        for (const table of byColumns.values()) table.move(this.#free, changed, risen);
      }
    }
    if (!keepsSame) this.#settle(risen);
    this.#free.remember();
    return [...risen].map(({ fit }) => fit);
  }

  #settle(risen: Set<Count>): void {
    for (const fit of this.#unsettled) {
      const known = this.#counts.get(fit);
      if (known === undefined) continue;
      const { table, row } = known;
      if (table.countAt(row) < 0) table.setCount(row, this.#free.fitting(fit, Number.POSITIVE_INFINITY));
      if (table.awaitedAt(row) <= table.countAt(row)) risen.add(known);
    }
    this.#unsettled.clear();
  }

  /** Stops counting a class. */
  stop(fit: FitClass): void {
    const known = this.#counts.get(fit) as Count;
    this.#counts.delete(fit);
    known.table.remove(known);
  }

  /** Counts nothing any more. */
  clear(): void {
    this.#counts.clear();
    this.#tables.clear();
    this.#unsettled.clear();
  }

  #start(fit: FitClass): Count {
    const table = this.#tableOf(fit);
    const count: Count = { fit, table, row: -1 };
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

/** Below 0: not known. */
function countOf({ table, row }: Count): number {
  return table.countAt(row);
}
