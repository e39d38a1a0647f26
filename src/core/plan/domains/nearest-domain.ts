import type { DomainTree } from "../capacity/domain-tree.ts";
import type { FreeCapacity } from "../capacity/free-capacity.ts";
import type { GangPods, WishingGroup } from "./place-gang.ts";

/** The domain that comes nearest to what a gang wishes for, in words. */
export type NearestDomain = {
  /** The name of the level that must hold all pods, or each slice. */
  readonly level: string;
  /** The values of its labels, `b1/r3`. Null: the wish is for slices, of which domains take some each. */
  readonly domain: string | null;
  /** How many of the pods fit there; of slices, in all domains together. */
  readonly takes: number;
  /** The size of a slice. Null: all pods must be in one domain. */
  readonly slice: number | null;
};

/** What a gang demands: groups that are in one domain of a level, or a group in slices. */
type Demand = {
  readonly groups: readonly WishingGroup[];
  readonly level: number;
  readonly slice: number | null;
};

/** Null: the gang demands no domain, or the nodes have none. */
export function nearestDomain(free: FreeCapacity, gang: GangPods): NearestDomain | null {
  const demand = demandOf(gang);
  const [first] = demand?.groups ?? [];
  const domains = first === undefined ? null : free.domainsFor(first.fit);
  if (demand === null || domains === null) return null;
  const { groups, level, slice } = demand;
  const takes = fittingByDomain(free, domains.tree, { groups, level });
  const name = domains.topology[level]?.name ?? "";
  if (slice !== null) {
    const whole = [...takes.values()].reduce((sum, one) => sum + Math.floor(one / slice) * slice, 0);
    return { level: name, domain: null, takes: whole, slice };
  }
  const [best] = [...takes].sort(([a, one], [b, other]) => other - one || a - b);
  if (best === undefined) return null;
  return { level: name, domain: domains.tree.pathOf(best[0]).join("/"), takes: best[1], slice };
}

function demandOf({ groups, together }: GangPods): Demand | null {
  if (together?.required === true) return { groups, level: together.level, slice: null };
  for (const group of groups) {
    const { required = false, level = null, slices = [] } = group.wish ?? {};
    if (required && level !== null) return { groups: [group], level, slice: null };
    const [outer] = slices;
    if (outer !== undefined) return { groups: [group], level: outer.level, slice: outer.size };
  }
  return null;
}

/** How many pods of some groups fit in each domain of a level, each group beside nothing of the others. */
function fittingByDomain(
  free: FreeCapacity,
  tree: DomainTree,
  { groups, level }: Pick<Demand, "groups" | "level">,
): ReadonlyMap<number, number> {
  const all = new Map<number, number>();
  for (const { fit, count } of groups) {
    const own = new Map<number, number>();
    for (const [slot, leaf] of tree.leafAt.entries()) {
      if (leaf < 0) continue;
      const domain = tree.above(leaf, level);
      own.set(domain, (own.get(domain) ?? 0) + free.podsAt(fit, slot, count));
    }
    for (const [domain, fits] of own) all.set(domain, (all.get(domain) ?? 0) + Math.min(count, fits));
  }
  return all;
}
