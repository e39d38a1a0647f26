import type { Job } from "../job.ts";
import type { JobSpec } from "../spec.ts";
import type { Changing, JobFilter } from "./filter.ts";

/** The place of a job in the order of creation. It never changes. */
export type JobKey = Pick<Job, "createTimeMs" | "uid">;

/** One change of one job in the event log. Watches send it. */
export type LoggedChange = {
  /** Dense, in the order of commits. Within a job, in the order of versions. */
  readonly position: number;
  readonly type: "ADDED" | "MODIFIED" | "DELETED";
  /** The job after the change. For DELETED: before it. Replica templates are omitted (`{}`). */
  readonly job: Job;
  /** Decides whether the job passed a filter before the change. Null for ADDED. */
  readonly previous: Changing | null;
};

/**
 * A position of the log, in the history that gives it its meaning. A database that was restored, or whose server was
 * replaced, gives positions again: then the log has another incarnation.
 */
export type LogPlace = { readonly incarnation: string; readonly position: number };

/** The spec of a job with its templates, and its bytes as JSON. */
export type WholeSpec = { readonly spec: JobSpec; readonly bytes: number };

export type WatchRequest = { readonly filter: JobFilter; readonly cursor: string; readonly full: boolean };

/** One item of a watch: a change of a job, or a note about the stream itself. */
export type WatchItem =
  | { readonly type: LoggedChange["type"]; readonly job: Job; readonly cursor: string }
  | { readonly type: "BOOKMARK" | "GAP" | "TOO_SLOW"; readonly cursor: string };

/** Rows that grow with the life of jobs and are pruned by age: entries of the log with request ids, events, asks. */
export type PrunedKind = "changes" | "events" | "asks";

/** A part of a pass that deletes old rows. */
export type PrunePage = {
  /** Rows that are younger stay. */
  readonly beforeMs: number;
  readonly nowMs: number;
  /** Where the page before ended, as it said. 0: the pass begins. */
  readonly after: number;
  /** The most rows that go. */
  readonly limit: number;
};

/** `next`: where the pass goes on. Null: it is over. */
export type Pruned = { readonly deleted: number; readonly next: number | null };
