import { maxOf } from "../../../runtime/lists.ts";
import type { TopologyWish } from "../../job/placement/topology-wish.ts";
import type { Bound } from "../capacity/domain-bounds.ts";
import type { FitClass } from "../capacity/fit-classes.ts";
import type { Topology } from "../model/topology.ts";
import type { DomainWish } from "./choose-domains.ts";

/**
 * All pods of a gang are in one domain of this level, or, if it is not required, as near each other as possible. The
 * level is one of those that nodes have for pods of a class.
 */
export type Together = { readonly by: FitClass; readonly level: number; readonly required: boolean };

/** The place of a level that is named by its name or its label. Null: there is none. */
function levelIn(topology: Topology, named: string): number | null {
  const at = topology.findIndex(({ name, label }) => name === named || label === named);
  return at < 0 ? null : at;
}

/** The first level of a wish that a cluster lacks. Null: it has all. */
export function missingLevel(topology: Topology, wish: TopologyWish): string | null {
  const { required, preferred, slices = [] } = wish;
  const named = [required, preferred, ...slices.map(({ level }) => level)].filter((one) => one !== undefined);
  return named.find((one) => levelIn(topology, one) === null) ?? null;
}

/** A wish by the levels of a cluster, which has all of them. */
export function wishIn(topology: Topology, { required, preferred, slices = [] }: TopologyWish): DomainWish {
  const named = required ?? preferred;
  const found = slices.map(({ level, size }) => ({ level: levelIn(topology, level) ?? 0, size }));
  return {
    level: named === undefined ? null : levelIn(topology, named),
    required: required !== undefined,
    slices: found.sort((a, b) => a.level - b.level),
  };
}

/** The levels of which a member must not leave its domain. Empty: it may go anywhere. */
export function boundsOf(together: Together | null, fit: FitClass, wish: DomainWish | undefined): readonly Bound[] {
  const own = [
    ...(wish?.required === true && wish.level !== null ? [wish.level] : []),
    ...(wish?.slices ?? []).map(({ level }) => level),
  ];
  return [
    ...(together?.required === true ? [{ by: together.by, level: together.level }] : []),
    ...(own.length === 0 ? [] : [{ by: fit, level: maxOf(own, 0) }]),
  ];
}
