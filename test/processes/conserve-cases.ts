import type { Combination, Strike } from "./conserve.ts";

/**
 * Combinations of servers {1, 2, 4}, quotas {1, 10, 1000} and topologies of Redis, chosen so that most pairs of values
 * occur.
 */
export const COMBINATIONS = [
  { servers: 1, quota: 1, topology: "standalone" },
  { servers: 2, quota: 1000, topology: "standalone" },
  { servers: 4, quota: 10, topology: "standalone" },
  { servers: 1, quota: 1000, topology: "cluster" },
  { servers: 2, quota: 1, topology: "cluster" },
  { servers: 4, quota: 1000, topology: "sentinel" },
  { servers: 2, quota: 10, topology: "sentinel" },
  { servers: 4, quota: 1, topology: "sentinel" },
] as const satisfies readonly Partial<Combination>[];

/** With sentinels, the primary is killed. Otherwise nothing happens. */
export function strikeOf({ topology }: Pick<Combination, "topology">): Strike {
  return topology === "sentinel" ? ({ redis }) => redis.losePrimary() : async () => undefined;
}
