import type { DomainTree } from "../capacity/domain-tree.ts";

/** Members with consecutive indexes, `size` each, of which each lies within one domain of a level. */
export type SliceWish = { readonly level: number; readonly size: number };

/** What pods of one class wish for. Levels are numbers, coarse to fine. */
export type DomainWish = {
  /** All pods are in one domain of this level, or as near each other as possible. Null: slices alone count. */
  readonly level: number | null;
  /** True: nothing but one domain of the level will do. */
  readonly required: boolean;
  /** Coarse to fine; the size of each divides the one before it. */
  readonly slices: readonly SliceWish[];
};

/** Pods in one of the finest domains. */
export type LeafPods = { readonly leaf: number; readonly pods: number };

/**
 * Chooses domains for pods of one class, as few and as tight as possible: the leaves in the order of their paths, with
 * as many pods for each. `fitting` says how many pods fit in a leaf. Null: the pods do not fit as they wish. The rules
 * are those of Kueue's topology-aware scheduling (its profile `BestFit`).
 */
export function chooseDomains(
  tree: DomainTree,
  fitting: (leaf: number) => number,
  { count, wish }: { readonly count: number; readonly wish: DomainWish },
): readonly LeafPods[] | null {
  return new Choice(tree, fitting, wish).of(count);
}

/** A domain, and how many units of pods go there. */
type Part = { readonly domain: number; readonly units: number };

class Choice {
  readonly #tree: DomainTree;
  readonly #wish: DomainWish;
  /** The coarsest slices; those of one pod at the finest level if there are none. */
  readonly #outer: SliceWish;
  /** By domain: the pods that fit there in whole inner slices, and the outer slices. */
  readonly #pods: Float64Array;
  readonly #slices: Float64Array;
  readonly #children: (readonly number[] | undefined)[] = [];
  /** Without a level the least free domains come first. */
  readonly #leastFirst: boolean;

  constructor(tree: DomainTree, fitting: (leaf: number) => number, wish: DomainWish) {
    this.#tree = tree;
    this.#leastFirst = wish.level === null;
    const finest = tree.depth - 1;
    const [outer = { level: finest, size: 1 }] = wish.slices;
    const { level, required } = wish;
    // All pods in one domain of a finer level: so are slices. A preference goes no finer than slices.
    this.#outer = required ? { ...outer, level: Math.max(outer.level, level ?? 0) } : outer;
    this.#wish = { ...wish, level: level === null ? null : Math.min(level, this.#outer.level) };
    this.#pods = new Float64Array(tree.size);
    this.#slices = new Float64Array(tree.size);
    this.#count(fitting);
  }

  of(count: number): readonly LeafPods[] | null {
    const needed = count / this.#outer.size;
    if (!Number.isInteger(needed) || this.#tree.size === 0) return null;
    const first = this.#first(needed);
    if (first === null) return null;
    let { parts, level } = first;
    while (level < this.#outer.level) {
      level += 1;
      const children = parts.flatMap(({ domain }) => this.#childrenOf(domain));
      parts = this.#take(children, this.#slices, needed) ?? [];
    }
    let pods = parts.map(({ domain, units }) => ({ domain, units: units * this.#outer.size }));
    while (level < this.#tree.depth - 1) {
      level += 1;
      const size = this.#unitAt(level);
      const units = size === 1 ? this.#pods : this.#pods.map((fits) => Math.floor(fits / size));
      pods = pods.flatMap((part) => {
        const taken = this.#take(this.#childrenOf(part.domain), units, part.units / size) ?? [];
        return taken.map((one) => ({ ...one, units: one.units * size }));
      });
    }
    return pods.map(({ domain, units }) => ({ leaf: domain, pods: units })).sort((a, b) => a.leaf - b.leaf);
  }

  /** The domains of the level at which all pods are together. Null: there is none for so many slices. */
  #first(needed: number): { readonly parts: readonly Part[]; readonly level: number } | null {
    const { level: wished, required, slices } = this.#wish;
    const start = wished ?? (slices.length > 0 ? 0 : this.#tree.depth - 1);
    for (let level = start; level >= 0; level--) {
      const domain = this.#tightest(this.#tree.domainsAt(level), this.#slices, needed);
      if (domain !== null) return { parts: [{ domain, units: needed }], level };
      if (wished === null || required) break;
    }
    if (required) return null;
    const level = wished === null ? start : 0;
    const parts = this.#take(this.#tree.domainsAt(level), this.#slices, needed);
    return parts === null ? null : { parts, level };
  }

  /** Takes as few domains as possible for some units; the last one is the tightest that suffices. */
  #take(domains: readonly number[], units: Float64Array, needed: number): readonly Part[] | null {
    const sign = this.#leastFirst ? 1 : -1;
    const open = domains.filter((domain) => (units[domain] as number) > 0);
    open.sort((a, b) => sign * ((units[a] as number) - (units[b] as number)) || this.#byPods(a, b));
    const parts: Part[] = [];
    let left = needed;
    for (const [at, domain] of open.entries()) {
      const has = units[domain] as number;
      if (has >= left) {
        const last = this.#tightest(open.slice(at), units, left) ?? domain;
        return [...parts, { domain: last, units: left }];
      }
      parts.push({ domain, units: has });
      left -= has;
    }
    return null;
  }

  /** The domain with the fewest units that suffice, then with the fewest pods, then the first by its path. */
  #tightest(domains: readonly number[], units: Float64Array, needed: number): number | null {
    let best: number | null = null;
    for (const domain of domains) {
      const has = units[domain] as number;
      if (has < needed) continue;
      if (best === null || (has - (units[best] as number) || this.#byPods(domain, best)) < 0) best = domain;
    }
    return best;
  }

  #byPods(a: number, b: number): number {
    return (this.#pods[a] as number) - (this.#pods[b] as number) || a - b;
  }

  /** How many pods go together into a domain of a level that is finer than the outer slices' level. */
  #unitAt(level: number): number {
    return this.#wish.slices.slice(1).find((slice) => slice.level >= level)?.size ?? 1;
  }

  /** Adds up what fits, from the leaves upwards. */
  #count(fitting: (leaf: number) => number): void {
    const { starts, parents, leafStart, size } = this.#tree;
    for (let leaf = leafStart; leaf < size; leaf++) this.#pods[leaf] = fitting(leaf);
    for (let level = this.#tree.depth - 1; level >= 0; level--) {
      const inner = this.#wish.slices.slice(1).find((slice) => slice.level === level)?.size ?? 1;
      for (let domain = starts[level] as number; domain < (starts[level + 1] as number); domain++) {
        const pods = Math.floor((this.#pods[domain] as number) / inner) * inner;
        this.#pods[domain] = pods;
        if (level === this.#outer.level) this.#slices[domain] = Math.floor(pods / this.#outer.size);
        addTo(this.#pods, parents[domain] as number, pods);
        addTo(this.#slices, parents[domain] as number, this.#slices[domain] as number);
      }
    }
  }

  #childrenOf(domain: number): readonly number[] {
    if (this.#children.length === 0) {
      const byParent = Map.groupBy(this.#tree.parents.keys(), (child) => this.#tree.parents[child] as number);
      for (const [parent, children] of byParent) if (parent >= 0) this.#children[parent] = children;
    }
    return this.#children[domain] ?? [];
  }
}

/** Adds to an entry, if there is one. */
function addTo(amounts: Float64Array, at: number, amount: number): void {
  if (at >= 0) amounts[at] = (amounts[at] as number) + amount;
}
