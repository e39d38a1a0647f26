import type { JobFilter } from "./filter.ts";
import type { Job } from "./job.ts";

/** A job for display: its record, its position and its tokens at the time of the read. */
export type ShownJob = {
  readonly job: Job;
  /** The job's place in its queue, from 1; null unless it waits. */
  readonly position: number | null;
  /** Tokens that the job's current admission holds, by pool. */
  readonly tokens: readonly { readonly pool: string; readonly amount: number; readonly fence: bigint }[];
};

export type JobOrder = "create_time" | "create_time desc" | "name" | "priority desc";

/** Asks for one page of a list of jobs. */
export type JobQuery = {
  readonly filter: JobFilter;
  readonly order: JobOrder;
  readonly pageSize: number;
  /** The cursor that the previous page returned. Null: the first page. */
  readonly after: string | null;
};

/** One page of jobs. `next` is null on the last page. `total` counts the jobs that pass the filter, up to a bound. */
export type JobPage = { readonly jobs: readonly ShownJob[]; readonly next: string | null; readonly total: number };
