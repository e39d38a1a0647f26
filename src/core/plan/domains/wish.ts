import { maxOf } from "../../../runtime/lists.ts";
import type { TopologyWish } from "../../job/placement/topology-wish.ts";
import type { Topology } from "../model/topology.ts";
import type { DomainWish } from "./choose-domains.ts";
import type { Together } from "./place-gang.ts";

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

/** The wish for all pods of a gang together by the levels of a cluster, which has all of them. Null: there is none. */
export function togetherIn(topology: Topology, wish: TopologyWish | undefined): Together | null {
  const { level = null, required = false } = wish === undefined ? {} : wishIn(topology, wish);
  return level === null ? null : { level, required };
}

/** The finest level of which a member must not leave its domain. Null: it may go anywhere. */
export function boundLevel(together: Together | null, wish: DomainWish | undefined): number | null {
  const bounds = [
    ...(together?.required === true ? [together.level] : []),
    ...(wish?.required === true && wish.level !== null ? [wish.level] : []),
    ...(wish?.slices ?? []).map(({ level }) => level),
  ];
  return bounds.length === 0 ? null : maxOf(bounds, 0);
}
