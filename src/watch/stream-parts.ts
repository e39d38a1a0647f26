import type { SharedCalls } from "../runtime/shared-calls.ts";
import type { LogPages } from "./log-pages.ts";
import type { WatchPorts } from "./ports.ts";
import type { Tail } from "./tail.ts";
import type { WholeJobs } from "./whole-jobs.ts";

export type StreamOptions = {
  /** A reader that is more entries behind gets TOO_SLOW. */
  readonly bufferMax: number;
  /** A stream without entries sends a bookmark this often. */
  readonly bookmarkMs: number;
  /** A stream whose filter drops entries sends a bookmark after this many. */
  readonly bookmarkEntries: number;
  /** The most jobs of a page of a snapshot. Their bytes are bounded too. */
  readonly snapshotPage: number;
};

/** Shared by all streams: the ports, the tail of the log, what they read together, and the bounds. */
export type StreamParts = {
  readonly ports: WatchPorts;
  readonly tail: Tail;
  /** Reads of snapshots. Streams that wait for the same share a read. */
  readonly reads: SharedCalls;
  readonly pages: LogPages;
  readonly whole: WholeJobs;
  /** Gives positions to everything that is committed now, so that a snapshot is rarely ahead of the log. */
  readonly settle: () => Promise<void>;
  readonly options: StreamOptions;
};
