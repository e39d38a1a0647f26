import type { Packer } from "./rules.ts";
import { GPU } from "./trace.ts";
import type { PackWorld } from "./worlds.ts";

/** The part of the GPUs in use, by how much was requested: in percent of all GPUs, from 0 to 100. */
export type Filled = readonly number[];

/** Lets every gang try once, in the order of arrival. */
export function fill(packer: Packer, { nodes, gangs }: PackWorld): Filled {
  const all = gpusOf(nodes);
  const filled: number[] = [];
  let [requested, used] = [0, 0];
  for (const gang of gangs) {
    if (packer.place(gang) !== null) used += gang.pods * gang.gpus;
    requested += gang.pods * gang.gpus;
    const load = Math.min(100, Math.floor((100 * requested) / all));
    while (filled.length <= load) filled.push(0);
    filled[load] = (100 * used) / all;
  }
  // Loads that one large gang has passed over are those of the gang.
  return filled.map((part, load) => (part > 0 ? part : (filled.slice(load).find((later) => later > 0) ?? 0)));
}

export function gpusOf(nodes: PackWorld["nodes"]): number {
  return nodes.reduce((sum, { resources }) => sum + (resources[GPU] ?? 0) / 1000, 0);
}
