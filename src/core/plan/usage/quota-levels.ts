import type { Scope } from "../../quota/counters.ts";

/** A project and a namespace in it. Accounts of the same share one. */
export type Owner = { readonly project: string; readonly namespace: string };

/** The queue, project and namespace that a gang is charged to. */
export type Account = {
  readonly queue: string;
  readonly owner: Owner;
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

/** The levels of one pool for one version of the limits. Accounts share them. */
export type PoolLevels = {
  readonly pool: Level;
  /** Those of each queue, and of the queues above it. */
  readonly ofQueues: Map<string, readonly Level[]>;
  /** Those of the project and the namespace of each owner. */
  readonly ofOwners: Map<Owner, readonly Level[]>;
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
