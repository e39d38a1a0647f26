import type { PlannedPreemption } from "../preemption.ts";
import type { PoolAmounts } from "./branch-use.ts";
import type { FoundVictims } from "./find-victims.ts";
import type { Request } from "./requests.ts";

/** What the first gang of a lane would get now. */
export type Assignment = {
  /**
   * `preempts`: it fits once others gave way. `inLine`: a cluster has room for it, and it lacks only tokens of pools.
   * `service`: it needs no cluster.
   */
  readonly kind: "fits" | "preempts" | "inLine" | "service";
  /** Null: it needs no cluster. */
  readonly request: Request | null;
  /** The amounts that it takes of each pool. */
  readonly wants: PoolAmounts;
  /** Who gives way for it, and where. Null: nobody does. */
  readonly victims: FoundVictims | null;
};

/** How a gang that preempts others fared: `reserved`: it waits for victims of others. `skipped`: it no longer fits. */
export type Preempted = PlannedPreemption | "reserved" | "skipped";

/** What a gang gets that needs no cluster. */
export const SERVICE: Assignment = { kind: "service", request: null, wants: new Map(), victims: null };
