import { type CapacityEntry, presentEntry } from "../../src/core/plan/model/capacity-entry.ts";

/** A complete report of a cluster's capacity. */
export function completeCapacity(cluster: string, entries: readonly CapacityEntry[]) {
  return { cluster, reachable: true, since: null, changes: entries.map(presentEntry) } as const;
}
