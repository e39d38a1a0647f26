/** Places gangs of which some pods wish to be near each other. The others are placed as `placeAll` does. */
import type { DomainTree } from "../capacity/domain-tree.ts";
import type { FitClass } from "../capacity/fit-classes.ts";
import type { FreeCapacity } from "../capacity/free-capacity.ts";
import { eachFits, type FitGroup, fitGroups, fitTogether, type PlaceResult, placeAll } from "../capacity/place-all.ts";
import { chooseDomains, type DomainWish } from "./choose-domains.ts";
import { boundsOf, type Together } from "./wish.ts";

/** Pods of one class, with what they wish for. Omitted: nothing. */
export type WishingGroup = FitGroup & { readonly wish?: DomainWish };

/** The pods of a gang in one cluster. The groups are those of `placeAll`. */
export type GangPods = {
  readonly groups: readonly WishingGroup[];
  /** Null: nothing is wished of all pods together. */
  readonly together: Together | null;
};

/** True if a gang wishes for domains, so that enough room for each of its pods does not suffice. */
export function wishesForDomains({ groups, together }: GangPods): boolean {
  return together !== null || groups.some(({ wish }) => wish !== undefined);
}

/** Places all pods as they wish, or none. */
export function placeGang(free: FreeCapacity, gang: GangPods): PlaceResult {
  if (!wishesForDomains(gang)) return placeAll(free, gang.groups);
  const { mark } = free;
  const all = placeTogether(free, gang);
  if (!all) free.undo(mark);
  return { all, placed: all ? gang.groups.reduce((sum, { count }) => sum + count, 0) : 0 };
}

/** True if all pods of a gang fit as they wish. Places nothing. */
export function fitGang(free: FreeCapacity, gang: GangPods): boolean {
  if (!wishesForDomains(gang)) return fitGroups(free, gang.groups);
  return eachFits(free, gang.groups) && fitsAsWished(free, gang);
}

/** The same for a gang of which the pods of each group alone fit, wishes apart. `isEnough` tells that. */
export function fitGangTogether(
  free: FreeCapacity,
  gang: GangPods,
  isEnough: (fit: FitClass, count: number) => boolean,
): boolean {
  if (wishesForDomains(gang)) return fitsAsWished(free, gang);
  return gang.groups.length === 1 || fitTogether(free, gang.groups, isEnough);
}

function fitsAsWished(free: FreeCapacity, gang: GangPods): boolean {
  const { mark } = free;
  const { all } = placeGang(free, gang);
  free.undo(mark);
  return all;
}

function placeTogether(free: FreeCapacity, { groups, together }: GangPods): boolean {
  if (together === null) return placeInTurns(free, groups);
  const [first, ...others] = groups;
  if (first === undefined) return true;
  const domains = free.domainsFor(together.by);
  if (domains === null) return false;
  const { level, required } = together;
  if (others.length === 0 && (first.wish?.level ?? null) === null && free.domainsFor(first.fit) === domains) {
    return placeInTurns(free, [{ ...first, wish: { level, required, slices: first.wish?.slices ?? [] } }]);
  }
  const tries = new DomainTries(free, groups);
  for (let at = level; at >= 0; at--) {
    if (tries.placeAt(domains.tree, at)) return true;
    if (required) return false;
  }
  return placeInTurns(free, groups);
}

/** So many domains that differ are tried for one gang at most. */
const DOMAINS_TRIED_MAX = 32;

/** Tries domains that must take all groups together. */
class DomainTries {
  readonly #free: FreeCapacity;
  readonly #groups: readonly WishingGroup[];
  readonly #fits: readonly FitClass[];
  /** What the nodes of domains look like that did not take them: domains that look alike do not either. */
  readonly #failed = new Set<string>();

  constructor(free: FreeCapacity, groups: readonly WishingGroup[]) {
    this.#free = free;
    this.#groups = groups;
    this.#fits = groups.map(({ fit }) => fit);
  }

  /** Places all groups in the first domain of a level that takes them, the one with the fewest free devices first. */
  placeAt(tree: DomainTree, level: number): boolean {
    const { mark } = this.#free;
    for (const slots of this.#candidates(tree, level)) {
      const looks = this.#looksOf(slots);
      if (this.#failed.has(looks)) continue;
      if (this.#failed.size >= DOMAINS_TRIED_MAX) return false;
      if (this.#free.within(slots, () => placeInTurns(this.#free, this.#groups))) return true;
      this.#free.undo(mark);
      this.#failed.add(looks);
    }
    return false;
  }

  /** The slots of each domain in which the pods of each group alone fit. */
  #candidates(tree: DomainTree, level: number): readonly (readonly number[])[] {
    const free = this.#free;
    const domains = tree.domainsAt(level).map((domain) => tree.slotsUnder(domain));
    const enough = domains.filter((slots) =>
      this.#groups.every(
        ({ fit, count }) => slots.reduce((sum, slot) => sum + free.podsAt(fit, slot, count), 0) >= count,
      ),
    );
    const leading = this.#groups[0] as WishingGroup;
    const column = free.fits.devicesOf(leading.fit)[0] ?? leading.fit.columns[0];
    const freeIn = (slots: readonly number[]) =>
      column === undefined ? 0 : slots.reduce((sum, slot) => sum + Math.max(0, free.freeAt(column, slot)), 0);
    // Domains of equal sums stay in the order of their paths.
    return enough
      .map((slots) => ({ slots, sum: freeIn(slots) }))
      .sort((a, b) => a.sum - b.sum)
      .map(({ slots }) => slots);
  }

  /** Equal for domains between which the groups cannot tell, where they wish for nothing inside of them. */
  #looksOf(slots: readonly number[]): string {
    if (this.#groups.some(({ wish }) => wish !== undefined)) return slots.join();
    return slots
      .map((slot) => this.#free.describe(this.#fits, slot))
      .sort()
      .join(";");
  }
}

/** The largest groups, up to this number, are each tried first. */
const LEADERS_MAX = 8;

/**
 * Places all groups, or fails: those with a wish first, then in other orders, as groups can take each other's nodes.
 * Wishes that bind no pod give way at last. Groups of one class always keep their order: those with a wish come first,
 * as in the list. So it is known whose nodes are whose.
 */
function placeInTurns(free: FreeCapacity, groups: readonly WishingGroup[]): boolean {
  const { mark } = free;
  const first = [
    ...groups.filter(({ wish }) => wish !== undefined),
    ...groups.filter(({ wish }) => wish === undefined),
  ];
  const fits = [...new Set(first.map(({ fit }) => fit))];
  const leaders = fits.length < 2 ? [] : fits.slice(0, LEADERS_MAX);
  const orders = [
    first,
    ...leaders.map((leader) => [...first].sort((a, b) => Number(b.fit === leader) - Number(a.fit === leader))),
  ];
  for (const order of orders) {
    if (placeInOrder(free, order)) return true;
    free.undo(mark);
  }
  const binds = groups.some(({ fit, wish }) => boundsOf(null, fit, wish).length > 0);
  return !binds && placeAll(free, merged(groups)).all;
}

/** What it places stays, also if it fails. Groups without a wish that follow each other are placed together. */
function placeInOrder(free: FreeCapacity, groups: readonly WishingGroup[]): boolean {
  let waiting: WishingGroup[] = [];
  const placeWaiting = () => {
    const isPlaced = waiting.length === 0 || placeAll(free, waiting).all;
    waiting = [];
    return isPlaced;
  };
  for (const group of groups) {
    const { fit, count, wish } = group;
    if (wish === undefined) waiting.push(group);
    else if (!placeWaiting() || !placeWished(free, { fit, count, wish })) return false;
  }
  return placeWaiting();
}

/** The groups without their wishes: one of each class, the largest first as before. */
export function merged(groups: readonly FitGroup[]): readonly FitGroup[] {
  const counts = new Map<FitClass, number>();
  for (const { fit, count } of groups) counts.set(fit, (counts.get(fit) ?? 0) + count);
  return [...counts].map(([fit, count]) => ({ fit, count }));
}

/** Places pods of one class as they wish. False: nothing is placed. */
export function placeWished(
  free: FreeCapacity,
  { fit, count, wish }: FitGroup & { readonly wish: DomainWish },
): boolean {
  const tree = free.domainsFor(fit)?.tree;
  if (tree === undefined) return false;
  const fitting = (leaf: number) => tree.slotsIn(leaf).reduce((sum, slot) => sum + free.podsAt(fit, slot, PODS_MAX), 0);
  const chosen = chooseDomains(tree, fitting, { count, wish });
  for (const { leaf, pods } of chosen ?? []) {
    const [slot, ...others] = tree.slotsIn(leaf);
    if (others.length === 0 && slot !== undefined) free.put(fit, slot, pods);
    else free.within(tree.slotsIn(leaf), () => free.place(fit, pods));
  }
  return chosen !== null;
}

/** More pods than a node takes, for pods that request nothing. */
const PODS_MAX = 1_000_000;
