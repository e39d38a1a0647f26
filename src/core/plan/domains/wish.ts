import type { TopologyWish } from "../../job/placement/topology-wish.ts";
import type { Topology } from "../model/topology.ts";
import type { DomainWish } from "./choose-domains.ts";

/** The place of a level that is named by its name or its label. Null: there is none. */
export function levelIn(topology: Topology, named: string): number | null {
  const at = topology.findIndex(({ name, label }) => name === named || label === named);
  return at < 0 ? null : at;
}

/** A wish by the levels of a cluster. Null: the cluster lacks a level of it. */
export function wishIn(topology: Topology, { required, preferred, slices = [] }: TopologyWish): DomainWish | null {
  const named = required ?? preferred;
  const level = named === undefined ? null : levelIn(topology, named);
  const sliced = slices.map(({ level: one, size }) => ({ level: levelIn(topology, one), size }));
  if ((named !== undefined && level === null) || sliced.some((slice) => slice.level === null)) return null;
  const found = sliced.map(({ level: at, size }) => ({ level: at ?? 0, size }));
  return { level, required: required !== undefined, slices: found.sort((a, b) => a.level - b.level) };
}
