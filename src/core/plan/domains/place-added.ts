import type { FitClass } from "../capacity/fit-classes.ts";
import type { FreeCapacity } from "../capacity/free-capacity.ts";
import { fitTogether, placeAll } from "../capacity/place-all.ts";
import type { GangPods, WishingGroup } from "./place-gang.ts";
import { boundLevel } from "./wish.ts";

type AddedGroup = WishingGroup & { readonly role: string };

/** Pods that a running gang gets in addition. */
export type AddedPods = Pick<GangPods, "together"> & {
  readonly groups: readonly AddedGroup[];
  /** A node where the gang runs, of this replica type if that is known. Null: none is known. */
  readonly nodeOf: (role: string) => string | null;
};

/** Places pods that a running gang gets in addition: those that are bound to a domain in the one where it runs. */
export function placeAdded(free: FreeCapacity, added: AddedPods): boolean {
  const { mark } = free;
  const { groups, together } = added;
  const isFree = ({ wish }: WishingGroup) => wish === undefined && boundLevel(together, wish) === null;
  const rest = groups.filter(isFree);
  // Those with a wish come first, as in `placeGang`, so that it is known whose nodes are whose.
  const bound = groups.filter((group) => !isFree(group)).sort((a, b) => Number(!a.wish) - Number(!b.wish));
  const isPlaced =
    bound.every((group) => placeInDomain(free, added, group)) && (rest.length === 0 || placeAll(free, rest).all);
  if (!isPlaced) free.undo(mark);
  return isPlaced;
}

/** True if they fit, of which the pods of each group alone fit. Places nothing. */
export function fitAdded(
  free: FreeCapacity,
  added: AddedPods,
  isEnough: (fit: FitClass, count: number) => boolean,
): boolean {
  const { groups, together } = added;
  if (groups.every(({ wish }) => boundLevel(together, wish) === null)) return fitTogether(free, groups, isEnough);
  const { mark } = free;
  const fits = placeAdded(free, added);
  free.undo(mark);
  return fits;
}

/** Pods that only prefer a level go anywhere. A gang in slices does not grow: what is added could cut one. */
function placeInDomain(
  free: FreeCapacity,
  { together, nodeOf }: AddedPods,
  { fit, count, role, wish }: AddedGroup,
): boolean {
  const level = boundLevel(together, wish);
  if (level === null) return free.place(fit, count) === count;
  const tree = free.domainsFor(fit)?.tree;
  const node = nodeOf(role);
  const leaf = node === null ? undefined : tree?.leafAt[free.slotOf(node) ?? -1];
  if (tree === undefined || leaf === undefined || leaf < 0) return false;
  if (wish !== undefined && wish.slices.length > 0) return false;
  return free.within(tree.slotsUnder(tree.above(leaf, level)), () => free.place(fit, count)) === count;
}
