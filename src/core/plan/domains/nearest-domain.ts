import type { DomainTree } from "../capacity/domain-tree.ts";
import type { FitClass } from "../capacity/fit-classes.ts";
import type { FreeCapacity } from "../capacity/free-capacity.ts";
import type { DomainWish } from "./choose-domains.ts";
import { fitGang, type GangPods, type WishingGroup } from "./place-gang.ts";

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
  /** The level is one of those that nodes have for pods of this class. */
  readonly by: FitClass;
  readonly level: number;
  readonly slice: number | null;
};

/** Null: the gang demands no domain, or the nodes have none. */
export function nearestDomain(free: FreeCapacity, gang: GangPods): NearestDomain | null {
  const demand = demandOf(free, gang);
  const domains = demand === null ? null : free.domainsFor(demand.by);
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

/** The first demand that does not hold, each type for itself and then all together; else the first one. */
function demandOf(free: FreeCapacity, { groups, together }: GangPods): Demand | null {
  const holds = (group: WishingGroup) => fitGang(free, { groups: [group], together: null });
  const own = groups.flatMap((group) => demandsOf(group));
  const all = together?.required === true ? [{ groups, by: together.by, level: together.level, slice: null }] : [];
  const broken = own.find(({ alone }) => !holds(alone));
  return broken ?? all[0] ?? own[0] ?? null;
}

/** What a type demands: one domain, and slices. `alone`: its pods with this demand and no other. */
function demandsOf(group: WishingGroup): readonly (Demand & { readonly alone: WishingGroup })[] {
  const { required = false, level = null, slices = [] } = group.wish ?? {};
  const [outer] = slices;
  const made = (wish: DomainWish, at: number, slice: number | null) => {
    return { groups: [group], by: group.fit, level: at, slice, alone: { ...group, wish } };
  };
  return [
    ...(required && level !== null ? [made({ level, required, slices: [] }, level, null)] : []),
    ...(outer === undefined ? [] : [made({ level, required, slices }, outer.level, outer.size)]),
  ];
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
