import type { Changing, JobFilter } from "../core/job/filter.ts";
import type { Job } from "../core/job/job.ts";
import type { Clock } from "../runtime/clock.ts";

/** A change of one job as the event log holds it. */
export type LogEntry = {
  /** Dense, in commit order; by version within a job. */
  readonly position: number;
  readonly type: "ADDED" | "MODIFIED" | "DELETED";
  /** The job after the change; before it, for DELETED. Replica templates are left out (`{}`). */
  readonly job: Job;
  /** Whether the job matched before the change is decided from these. */
  readonly previous: Changing | null;
};

export type WatchStore = {
  /** Gives committed events without a position the next ones; returns the newest position, and how many were given. */
  readonly sequence: (nowMs: number) => Promise<{
    readonly head: number;
    readonly given: number;
    /** When the oldest of these was made; null where none was given. */
    readonly oldestMs?: number | null;
  }>;
  /** The newest position that was given. */
  readonly head: () => Promise<number>;
  /** One repeatable-read transaction: matching jobs, the head, and versions whose events have no position yet. */
  readonly snapshot: (filter: JobFilter) => Promise<{
    readonly jobs: readonly Job[];
    readonly head: number;
    readonly ahead: ReadonlyMap<string, number>;
  }>;
  /** Entries after a position, oldest first; `gap` where the log no longer reaches back to it. */
  readonly entriesAfter: (
    position: number,
    limit: number,
  ) => Promise<{ readonly entries: readonly LogEntry[]; readonly gap: boolean }>;
  /** Full records, with templates, of those that still exist. */
  readonly loadJobs: (uids: readonly string[]) => Promise<ReadonlyMap<string, Job>>;
  /** Drops events older than the retention. */
  readonly prune: (beforeMs: number) => Promise<void>;
};

export type WatchPorts = {
  readonly clock: Clock;
  readonly store: WatchStore;
  /** The sequencer's lease: whoever holds it gives positions as changes come. Absent where there is only one process. */
  readonly lease?: { readonly epoch: () => number | null };
  /** Told after positions were given, so that others follow at once. A hint. */
  readonly onGiven?: () => void;
};
