/** Places gangs of which some pods wish to be near each other. The others are placed as `placeAll` does. */
import type { DomainTree } from "../capacity/domain-tree.ts";
import type { FitClass } from "../capacity/fit-classes.ts";
import type { FreeCapacity } from "../capacity/free-capacity.ts";
import { eachFits, type FitGroup, fitGroups, fitTogether, type PlaceResult, placeAll } from "../capacity/place-all.ts";
import { chooseDomains, type DomainWish } from "./choose-domains.ts";

/** Pods of one class, with what they wish for. Omitted: nothing. */
export type WishingGroup = FitGroup & { readonly wish?: DomainWish };

/** All pods of a gang are in one domain of this level, or, if it is not required, as near each other as possible. */
export type Together = { readonly level: number; readonly required: boolean };

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
  if (together === null) return placeEach(free, groups);
  const [first, ...others] = groups;
  if (first === undefined) return true;
  if (others.length === 0 && (first.wish?.level ?? null) === null) {
    return placeEach(free, [{ ...first, wish: { ...together, slices: first.wish?.slices ?? [] } }]);
  }
  const tree = free.domainsFor(first.fit)?.tree;
  if (tree === undefined) return false;
  for (let level = together.level; level >= 0; level--) {
    if (placeInOneOf(free, groups, { tree, level })) return true;
    if (together.required) return false;
  }
  return placeEach(free, groups);
}

/** Places all groups in one domain of a level: the first that takes them, those with the fewest free devices first. */
function placeInOneOf(
  free: FreeCapacity,
  groups: readonly WishingGroup[],
  { tree, level }: { readonly tree: DomainTree; readonly level: number },
): boolean {
  const { mark } = free;
  const slotsOf = Map.groupBy(
    [...tree.leafAt.keys()].filter((slot) => (tree.leafAt[slot] as number) >= 0),
    (slot) => tree.above(tree.leafAt[slot] as number, level),
  );
  const enough = [...slotsOf].filter(([, slots]) =>
    groups.every(({ fit, count }) => slots.reduce((sum, slot) => sum + free.podsAt(fit, slot, count), 0) >= count),
  );
  const leading = groups[0] as WishingGroup;
  const column = free.fits.devicesOf(leading.fit)[0] ?? leading.fit.columns[0];
  const freeIn = (slots: readonly number[]) =>
    column === undefined ? 0 : slots.reduce((sum, slot) => sum + Math.max(0, free.freeAt(column, slot)), 0);
  const candidates = enough.map(([domain, slots]) => ({ domain, slots, free: freeIn(slots) }));
  candidates.sort((a, b) => a.free - b.free || a.domain - b.domain);
  for (const { slots } of candidates) {
    if (free.within(slots, () => placeEach(free, groups))) return true;
    free.undo(mark);
  }
  return false;
}

/** Places each group as it wishes, then the groups without a wish. What it places stays, also if it fails. */
function placeEach(free: FreeCapacity, groups: readonly WishingGroup[]): boolean {
  const isPlaced = groups.every(
    ({ fit, count, wish }) => wish === undefined || placeWished(free, { fit, count, wish }),
  );
  const rest = groups.filter(({ wish }) => wish === undefined);
  return isPlaced && (rest.length === 0 || placeAll(free, rest).all);
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
  for (const { leaf, pods } of chosen ?? []) free.within(tree.slotsIn(leaf), () => free.place(fit, pods));
  return chosen !== null;
}

/** More pods than a node takes, for pods that request nothing. */
const PODS_MAX = 1_000_000;
