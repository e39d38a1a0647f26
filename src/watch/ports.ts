import type { LoggedChange } from "../core/job/event-log.ts";
import type { JobFilter } from "../core/job/filter.ts";
import type { Job } from "../core/job/job.ts";
import type { Clock } from "../runtime/clock.ts";

export type WatchStore = {
  /** Gives positions to the committed events that have none. Returns the newest position and the number of events. */
  readonly sequence: (nowMs: number) => Promise<{
    readonly head: number;
    readonly given: number;
    /** When the oldest of these events was made; null if there was none. */
    readonly oldestMs?: number | null;
  }>;
  /** The newest position. */
  readonly head: () => Promise<number>;
  /** Reads in one transaction the matching jobs, the head, and the versions whose events have no position yet. */
  readonly snapshot: (filter: JobFilter) => Promise<{
    readonly jobs: readonly Job[];
    readonly head: number;
    readonly ahead: ReadonlyMap<string, number>;
  }>;
  /** Entries after a position, oldest first. `gap`: the log no longer reaches back to the position. */
  readonly entriesAfter: (
    position: number,
    limit: number,
  ) => Promise<{ readonly entries: readonly LoggedChange[]; readonly gap: boolean }>;
  /** The full records, with templates, of the jobs that still exist. */
  readonly loadJobs: (uids: readonly string[]) => Promise<ReadonlyMap<string, Job>>;
  /** Drops events older than the retention. */
  readonly prune: (beforeMs: number) => Promise<void>;
};

export type WatchPorts = {
  readonly clock: Clock;
  readonly store: WatchStore;
  /** The process with this lease gives positions as changes come. Omitted: there is only one process. */
  readonly lease?: { readonly epoch: () => number | null };
  /** Called after positions were given, so that other processes read them at once. A hint. */
  readonly onGiven?: () => void;
};
