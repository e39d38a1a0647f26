import { type Bound, slotsWithin } from "../capacity/domain-bounds.ts";
import type { FitClass } from "../capacity/fit-classes.ts";
import type { FreeCapacity } from "../capacity/free-capacity.ts";
import { fitTogether, placeAll } from "../capacity/place-all.ts";
import { type GangPods, merged, placeWished, type WishingGroup } from "./place-gang.ts";
import { boundsOf } from "./wish.ts";

type AddedGroup = WishingGroup & { readonly role: string };

/** Pods that a running gang gets in addition. */
export type AddedPods = Pick<GangPods, "together"> & {
  readonly groups: readonly AddedGroup[];
  /** The planned nodes of the members that there are: of a replica type, or of all. */
  readonly nodesOf: (role: string | null) => readonly string[];
};

/** Places pods that a running gang gets in addition: those that are bound to a domain in the one where it runs. */
export function placeAdded(free: FreeCapacity, added: AddedPods): boolean {
  const { mark } = free;
  const slots = slotsTogether(free, added);
  const isPlaced = slots === null ? placeTypes(free, added) : free.within(slots, () => placeTypes(free, added));
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
  if (together?.required !== true && groups.every(({ wish }) => wish === undefined)) {
    return fitTogether(free, groups, isEnough);
  }
  const { mark } = free;
  const fits = placeAdded(free, added);
  free.undo(mark);
  return fits;
}

/** The slots of the domain that all pods of the gang must be in. Null: all. */
function slotsTogether(free: FreeCapacity, { together, nodesOf }: AddedPods): readonly number[] | null {
  if (together?.required !== true) return null;
  return slotsOfSome(free, nodesOf(null), [{ by: together.by, level: together.level }]);
}

/** The slots within the bounds of the first node that is still in a domain: all of them are in the same. */
function slotsOfSome(free: FreeCapacity, nodes: readonly string[], bounds: readonly Bound[]) {
  for (const node of nodes) {
    const slots = slotsWithin(free, node, bounds);
    if (slots === null || slots.length > 0) return slots;
  }
  return [];
}

/** Places the types with a wish first, as `placeGang` does, so that it is known whose nodes are whose. */
function placeTypes(free: FreeCapacity, { groups, nodesOf }: AddedPods): boolean {
  const rest = groups.filter(({ wish }) => wish === undefined);
  const isPlaced = groups.every(
    ({ wish, ...group }) => wish === undefined || placeType(free, { ...group, wish, nodesOf }),
  );
  return isPlaced && (rest.length === 0 || placeAll(free, merged(rest)).all);
}

/** Pods that only prefer a level go anywhere. A type in slices does not grow: what is added could cut one. */
function placeType(
  free: FreeCapacity,
  { fit, count, role, wish, nodesOf }: Required<AddedGroup> & Pick<AddedPods, "nodesOf">,
): boolean {
  if (wish.slices.length > 0) return false;
  const bounds = boundsOf(null, fit, wish);
  const nodes = nodesOf(role);
  if (bounds.length > 0 && nodes.length === 0) return placeWished(free, { fit, count, wish });
  const slots = bounds.length === 0 ? null : slotsOfSome(free, nodes, bounds);
  const place = () => free.place(fit, count) === count;
  return slots === null ? place() : free.within(slots, place);
}
