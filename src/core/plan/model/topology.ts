import { compareText } from "../../../runtime/compare-text.ts";
import type { NodeLabels } from "./node-labels.ts";

/** A level of a cluster: nodes with one value of the label are near each other. */
export type TopologyLevel = {
  /** The same in all clusters, such as `rack`. */
  readonly name: string;
  /** The label of the nodes in this cluster. */
  readonly label: string;
};

/** The levels of a cluster or a flavor, coarse to fine. Empty: none. */
export type Topology = readonly TopologyLevel[];

export const LEVELS_MAX = 16;

/** Each node is a domain of its own by this label, so it can only be the finest level. */
export const HOSTNAME_LABEL = "kubernetes.io/hostname";

/** A level, and how many nodes do not have its label. */
export type UnlabelledLevel = { readonly level: TopologyLevel; readonly nodes: number };

/** The levels whose label some nodes do not have, coarse to fine. */
export function unlabelledLevels(topology: Topology, nodes: readonly { readonly labels: NodeLabels }[]) {
  return topology.flatMap((level): readonly UnlabelledLevel[] => {
    const without = nodes.filter(({ labels }) => labels[level.label] === undefined).length;
    return without === 0 ? [] : [{ level, nodes: without }];
  });
}

/** The first problem of levels that an admin sends, as the end of a sentence. Null: there is none. */
export function topologyProblem(topology: Topology): string | null {
  const twice = (texts: readonly string[]) => texts.toSorted(compareText).find((text, at, all) => all[at + 1] === text);
  const name = twice(topology.map((level) => level.name));
  if (name !== undefined) return `must name each level once, and names ${name} twice`;
  const label = twice(topology.map((level) => level.label));
  if (label !== undefined) return `must use each label once, and uses ${label} twice`;
  const host = topology.findIndex((level) => level.label === HOSTNAME_LABEL);
  if (host >= 0 && host < topology.length - 1) {
    return `must have ${HOSTNAME_LABEL} last: no level is finer than ${topology[host]?.name}`;
  }
  return null;
}
