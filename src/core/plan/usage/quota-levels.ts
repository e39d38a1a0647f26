import type { Scope } from "../../quota/counters.ts";

/** The queue, project and namespace that a gang is charged to. */
export type Account = {
  readonly queue: string;
  readonly project: string;
  readonly namespace: string;
  /** The levels of each pool, for the version of the limits that they were made for. */
  readonly paths: Map<string, Path>;
};

/** A level at which an allocation of one pool counts. */
export type Level = {
  readonly id: number;
  readonly scope: Scope;
  readonly limit: number;
  /** The part that a queue passes nothing of to the queue above it. 0 for other levels. */
  readonly guarantee: number;
};

/** Every level of one pool for one account, in the order of the checks. */
export type Path = {
  readonly pool: Level;
  readonly queues: readonly Level[];
  readonly others: readonly Level[];
  readonly version: number;
};

/** The part of an amount by which a queue newly exceeds its guarantee: the queue above is charged with it. */
export function passedUp(used: number, amount: number, guarantee: number): number {
  return Math.max(0, used + amount - guarantee) - Math.max(0, used - guarantee);
}

/** Amounts by level. */
export type QuotaRise = readonly (readonly [level: number, more: number])[];

/** The reason of a level that is frozen. */
export function frozenReason({ kind }: Scope): "PoolFrozen" | "QueueFrozen" {
  return kind === "queue" ? "QueueFrozen" : "PoolFrozen";
}
