import type { CapacityEntry } from "../../src/core/plan/capacity-entry.ts";

/** A complete report of a cluster's capacity. */
export function completeCapacity(cluster: string, entries: readonly CapacityEntry[]) {
  const changes = entries.map((entry) => ({ key: { kind: entry.kind, name: entry.name }, entry }));
  return { cluster, reachable: true, since: null, changes } as const;
}
