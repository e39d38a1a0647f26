import type { Amounts } from "./amounts.ts";
import { allows, type FitClass, type Rules } from "./fit-classes.ts";

/** The nodes of a cluster as they are now: `placed` is the number of placements so far. */
type Nodes = {
  readonly placed: number;
  readonly free: Amounts;
  readonly classes: Int32Array;
  readonly slots: number;
};

/** The most that an allowed node has left of a column, and after how many placements it was looked up. */
type Most = { readonly amount: number; readonly placed: number };

/**
 * The most that any node which rules allow has left of a column. Placements only take capacity, so what was looked up
 * is an upper bound until capacity comes back.
 */
export class MostFree {
  readonly #known = new Map<Rules, Map<number, Most>>();
  /** The most placements after which something was looked up. */
  #latest = 0;

  /** The answer of `mayTake` after so many placements, if no node has to be looked at for it. Null: some have. */
  knownOf({ rules, columns, amounts }: FitClass, placed: number): boolean | null {
    const amount = amounts[0];
    if (amount === undefined) return true;
    const most = this.#known.get(rules)?.get(columns[0] as number);
    if (most === undefined) return null;
    if (amount > most.amount) return false;
    return most.placed === placed ? true : null;
  }

  /** False: no node has as much left of a class's scarcest resource as one pod requests. */
  mayTake({ rules, columns, amounts }: FitClass, nodes: Nodes): boolean {
    const column = columns[0] as number;
    const known = this.#known.get(rules) ?? new Map<number, Most>();
    this.#known.set(rules, known);
    const most = { amount: mostOf(nodes, column, rules), placed: nodes.placed };
    known.set(column, most);
    this.#latest = Math.max(this.#latest, nodes.placed);
    return (amounts[0] as number) <= most.amount;
  }

  /** Records that capacity has come back. */
  clear(): void {
    // To clear an empty map is not free.
    if (this.#known.size > 0) this.#known.clear();
    this.#latest = 0;
  }

  /** Records that all placements but the first ones were undone. */
  undo(placed: number): void {
    if (placed < this.#latest) this.clear();
  }
}

function mostOf({ free, classes, slots }: Nodes, column: number, rules: Rules): number {
  const amounts = free.column(column);
  let most = 0;
  for (let slot = 0; slot < slots; slot++) {
    const amount = amounts[slot] as number;
    if (amount > most && allows(rules, classes[slot] as number)) most = amount;
  }
  return most;
}
