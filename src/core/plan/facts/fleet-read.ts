import type { Scope } from "../../quota/counters.ts";
import type { HeldByCaller } from "../model/snapshot.ts";
import type { Change } from "./changes.ts";
import type { Cursor } from "./facts.ts";

/** How far a reader of the fleet has come. The store makes it. */
export type FleetPlace = {
  /** The incarnation of the log that the position is in. */
  readonly incarnation: string;
  /** The position in the log of jobs' changes up to which the gangs are known. */
  readonly position: number;
  /** The uid up to which gangs were loaded. Null: all of them were. */
  readonly loadedTo: string | null;
  /** The version of the limits for which queues, pools and sums are known. Null: they are not. */
  readonly limitsVersion: number | null;
  /** Every transaction older than this one was read. */
  readonly transaction: string;
  /** A digest of the clusters and holds that are known. Empty: the last read told changes, so more may follow. */
  readonly listed: string;
  /** Counts the reads. It is the version of the records that have none of their own. */
  readonly serial: number;
};

/** Entities that a reader can have whole lists of. */
export type ListedKind = "queue" | "pool" | "tenant" | "cluster" | "sum" | "holds";

/** A bounded part of the way from a place to the present. */
export type FleetRead = {
  /** True: the reader knows nothing of use, and begins again with these changes. */
  readonly restarts: boolean;
  readonly changes: readonly Change[];
  /** Kinds of which the changes name every entity that there is. */
  readonly whole: readonly ListedKind[];
  /** Some of the external callers that hold tokens, for messages. Null: they were not read again. */
  readonly callers: readonly HeldByCaller[] | null;
  readonly quotaEpoch: number;
  readonly place: FleetPlace;
  /** True: more follows at once. */
  readonly more: boolean;
};

/** The part of the fleet that a reader knows, so that it is not read again. */
export type KnownFleet = {
  /** The version of a job's record for which its gang is known. Null: it is not. */
  readonly versionOf: (jobUid: string) => number | null;
  /** The known use of a scope. 0: none is known. */
  readonly usedOf: (scope: Scope) => number;
  /** The place up to which a cluster's capacity is known. Null: none of it is. */
  readonly cursorOf: (cluster: string) => Cursor | null;
};
