import type { Job } from "../core/job/job.ts";
import type {
  JobKey,
  LoggedChange,
  LogPlace,
  Pruned,
  PrunedKind,
  PrunePage,
  WholeSpec,
} from "../core/job/request/event-log.ts";
import type { JobFilter } from "../core/job/request/filter.ts";
import type { Clock } from "../runtime/clock.ts";

export type SnapshotPage = {
  readonly jobs: readonly Job[];
  readonly head: LogPlace;
  readonly ahead: readonly (JobKey & { readonly version: number })[];
  /** True if more jobs match. They are on the next pages. */
  readonly more: boolean;
};

export type WatchStore = {
  /**
   * Gives positions to the committed events that have none. Returns the newest position and the number of events.
   * Begins a new incarnation of the log first if another server answers, or if the head is before `known`.
   */
  readonly sequence: (known: LogPlace | null) => Promise<{
    readonly head: LogPlace;
    readonly given: number;
    /** When the oldest of these events was made; null if there was none. */
    readonly oldestMs?: number | null;
    /** There were more than one call takes. */
    readonly more: boolean;
  }>;
  /** The newest position. */
  readonly head: () => Promise<LogPlace>;
  /**
   * Reads in one transaction a page of the matching jobs without templates, the head, and the newest versions whose
   * events have no position yet. The jobs come in the order of their keys.
   */
  readonly snapshot: (page: {
    readonly filter: JobFilter;
    /** The key of the last job of the page before. Null: the first page. */
    readonly after: JobKey | null;
    readonly limit: number;
  }) => Promise<SnapshotPage>;
  /**
   * Entries after a place, oldest first: as many as a page holds. `gap`: the log no longer reaches back to the place,
   * or has another incarnation.
   */
  readonly entriesAfter: (
    place: LogPlace,
    limit: number,
  ) => Promise<{ readonly entries: readonly LoggedChange[]; readonly gap: boolean }>;
  /**
   * The specs with templates of the first of these jobs: as many as a page holds, and at least one. Null: the record
   * of the job is gone.
   */
  readonly wholeSpecs: (uids: readonly string[]) => Promise<ReadonlyMap<string, WholeSpec | null>>;
  /** Deletes a page of old rows. */
  readonly prune: (kind: PrunedKind, page: PrunePage) => Promise<Pruned>;
};

export type WatchPorts = {
  readonly clock: Clock;
  readonly store: WatchStore;
  /** The process with this lease gives positions as changes come. Omitted: there is only one process. */
  readonly lease?: { readonly epoch: () => number | null };
  /** Called after positions were given, so that other processes read them at once. A hint. */
  readonly onGiven?: () => void;
  /** Called when the log has another incarnation than before: all streams get GAP. */
  readonly onBegunAnew?: (log: LogPlace) => void;
};
