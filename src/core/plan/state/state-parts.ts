import type { Ask } from "../ask.ts";
import type { PlannedFrom } from "../plan-gang.ts";
import type { AskShape, SizedAsk } from "./ask-shape.ts";
import type { PoolAmounts } from "./branch-use.ts";
import type { Flavors } from "./choices.ts";
import type { ClusterFacts, ClusterState } from "./cluster-state.ts";
import type { Entry, GangLines, Lane } from "./gang-lines.ts";
import type { HopefulLists } from "./hopeful-lists.ts";
import type { KeptRoom } from "./kept-room.ts";
import type { QuotaState } from "./quota-state.ts";
import type { QuotaWaits } from "./quota-waits.ts";
import type { ClusterBlock, ClusterBlocks } from "./refused.ts";
import type { Request } from "./requests.ts";
import type { EntryRunners, Runner, Runners } from "./runners.ts";
import type { SearchTurns } from "./search-turns.ts";
import type { ShapeChoices } from "./takers.ts";
import type { VictimBounds } from "./victim-bounds.ts";

/** A registered cluster, and why it refuses an ask whatever its room. Null: it does not. */
export type EligibleCluster = {
  readonly cluster: ClusterState;
  readonly facts: ClusterFacts;
  readonly block: ClusterBlock["reason"] | null;
};

/** The parts of the state that a round works on. */
export type Parts = {
  readonly quota: QuotaState;
  readonly lines: GangLines;
  readonly turns: SearchTurns;
  readonly waits: QuotaWaits;
  /** Refused requests for which there may be room again. */
  readonly hopeful: HopefulLists<Request>;
  readonly clusters: ReadonlyMap<string, ClusterState>;
  readonly isStrict: (queue: string) => boolean;
  /** The resources that some cluster counts by flavor. */
  readonly resources: readonly string[];
  /** True for two flavors that no node has together: wherever both are, they require different values of a label. */
  readonly excludes: (one: string, other: string) => boolean;
  /** The tokens that a waiting gang holds, by pool. They are off the use during a round. Null: none. */
  readonly holdsOf: (uid: string) => Readonly<Record<string, number>> | null;
  /** The amounts of each pool that an admission of a gang takes. */
  readonly usesOf: (entry: Entry, admission: PlannedFrom) => PoolAmounts;
  /** Running gangs as searches for victims see them, each with the record that it was made of. */
  readonly runners: WeakMap<Entry, EntryRunners>;
  /** The gangs that run, and what searches can find among them at most. Made anew once what runs has changed. */
  readonly running: () => { readonly runners: Runners; readonly bounds: VictimBounds };
  /** What the last round kept for gangs with reservations. It leaves out what time alone may change. */
  readonly keptBefore: WeakMap<Entry, KeptRoom>;
  /** What waiting gangs would take of each pool, by their shapes. */
  readonly choices: WeakMap<AskShape, ShapeChoices>;
  /** Gangs in the order in which they were expected to end when that was asked last. */
  lastEnds: readonly Runner[];
  /** What the round keeps for reservations, the first one first. */
  readonly kept: KeptRoom[];
  /** The registered clusters by name. */
  readonly clustersFor: (ask: Ask) => readonly EligibleCluster[];
  /** Rises when a cluster's record changes so that requests could fit otherwise. */
  readonly clustersVersion: number;
  /** Rises with each round before which more has changed than gangs that wait: running gangs may grow then. */
  readonly growthVersion: number;
  /** `lifted`: the reservations that are not charged when it is asked, by `liftedKey`. Omitted: those of now. */
  readonly requestOf: (lane: Lane, sized: SizedAsk, flavors: Flavors, lifted?: string) => Request;
  /** The answers of the clusters to some requests of an ask, made again only if they can have changed. */
  readonly shared: (shape: AskShape, requests: readonly Request[], make: () => ClusterBlocks) => ClusterBlocks;
};
