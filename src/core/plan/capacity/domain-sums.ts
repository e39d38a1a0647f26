import type { Amounts } from "./amounts.ts";
import type { FitClass } from "./fit-classes.ts";
import { isSame, NO_DOMAIN, type NodeDomains } from "./node-domains.ts";

/** The free devices of each domain, of some columns together. */
class DomainSum {
  readonly domains: NodeDomains;
  readonly columns: readonly number[];
  readonly #free: Amounts;
  /** By the number of a domain. */
  readonly sums: Float64Array;

  constructor(domains: NodeDomains, columns: readonly number[], free: Amounts) {
    this.domains = domains;
    this.columns = columns;
    this.#free = free;
    this.sums = new Float64Array(domains.count);
    const slots = domains.of[0]?.length ?? 0;
    for (let slot = 0; slot < slots; slot++) this.add(slot, this.own(slot));
  }

  /** The free devices of one node. */
  own(slot: number): number {
    let sum = 0;
    for (const column of this.columns) sum += Math.max(0, this.#free.at(column, slot));
    return sum;
  }

  /** Adds an amount to all domains that a slot's node is in. */
  add(slot: number, amount: number): void {
    if (amount === 0 || !this.domains.countsAt(slot)) return;
    for (const of of this.domains.of) {
      const domain = of[slot] as number;
      if (domain === NO_DOMAIN) return;
      this.sums[domain] = (this.sums[domain] as number) + amount;
    }
  }

  /** The free devices of the domain of a slot's node at a level; of the node alone if it is in none. */
  at(level: Int32Array, slot: number): number {
    const domain = level[slot] as number;
    return domain === NO_DOMAIN ? this.own(slot) : (this.sums[domain] as number);
  }
}

/** The free devices of domains. They are added up when they are first asked for, and placements move them. */
export class DomainSums {
  readonly #free: Amounts;
  readonly #sums: DomainSum[] = [];

  constructor(free: Amounts) {
    this.#free = free;
  }

  of(domains: NodeDomains, columns: readonly number[]): DomainSum {
    for (const sum of this.#sums) {
      if (sum.domains === domains && isSame(sum.columns, columns)) return sum;
    }
    const made = new DomainSum(domains, columns, this.#free);
    this.#sums.push(made);
    return made;
  }

  /** Records that a slot has another amount of a column than `before`. */
  move(column: number, slot: number, before: number): void {
    for (const sum of this.#sums) {
      if (!sum.columns.includes(column)) continue;
      sum.add(slot, Math.max(0, this.#free.at(column, slot)) - Math.max(0, before));
    }
  }

  /** Forgets the sums: the nodes have changed. */
  clear(): void {
    this.#sums.length = 0;
  }
}

/** The order of slots by the free devices of their domains, coarse to fine, for pods that count some columns. */
export class DomainOrder {
  /** The domain of each slot at the finest level. Null: there is no level but that of hosts. */
  readonly #finest: Int32Array | null;
  readonly #levels: readonly Int32Array[];
  readonly #sums: readonly DomainSum[];

  constructor(domains: NodeDomains, sums: readonly DomainSum[]) {
    this.#levels = domains.of;
    this.#finest = domains.of.at(-1) ?? null;
    this.#sums = sums;
  }

  /** True if pods of a class take of what is counted. */
  isMovedBy({ columns }: FitClass): boolean {
    return this.#finest !== null && this.#sums.some((sum) => sum.columns.some((column) => columns.includes(column)));
  }

  /** Below 0: slot `a` comes before `b`. 0: they are in the same domains, or in equal ones. */
  compare(a: number, b: number): number {
    for (const level of this.#levels) {
      const domain = level[a] as number;
      if (domain !== NO_DOMAIN && domain === level[b]) continue;
      for (const sum of this.#sums) {
        const difference = sum.at(level, a) - sum.at(level, b);
        if (difference !== 0) return difference;
      }
    }
    return 0;
  }

  /** True if two slots have nodes in the same domain of the finest level. A node in none is alone. */
  isTogether(a: number, b: number): boolean {
    const domain = this.#finest?.[a] ?? NO_DOMAIN;
    return domain !== NO_DOMAIN && domain === this.#finest?.[b];
  }
}
