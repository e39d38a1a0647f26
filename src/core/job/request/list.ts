import type { Job } from "../job.ts";
import type { Concern } from "./concerns.ts";
import type { JobFilter } from "./filter.ts";

/** A job for display: its record, its position and its tokens at the time of the read. */
export type ShownJob = {
  readonly job: Job;
  /** The job's place in its queue, from 1; null unless it waits. */
  readonly position: number | null;
  /** The priority that decides about the position; null or omitted unless the job waits. */
  readonly effectivePriority?: number | null;
  /** What is wrong with it, or under way, that its phase does not show. Omitted: nobody looked. */
  readonly concerns?: readonly Concern[];
  /** Tokens that the job's current admission holds, by pool. */
  readonly tokens: readonly { readonly pool: string; readonly amount: number; readonly fence: bigint }[];
};

/** How much of a job is read and shown: BASIC omits the templates of its pods and the state of its plugin. */
export type JobView = "BASIC" | "FULL";

/**
 * The most bytes of jobs in a page, as JSON in the store and as protobuf in an answer: gRPC clients refuse messages
 * over 4 MiB by default. A page with one job may be larger.
 */
export const PAGE_BYTES_MAX = 3.5 * 1024 * 1024;

export type JobOrder = "create_time" | "create_time desc" | "name" | "priority desc" | "held desc";

/** The phases in which a job has a live admission. */
const ADMITTED_PHASES: readonly string[] = ["ADMITTED", "STARTING", "RUNNING", "RESTARTING"];

/** Why jobs of these phases cannot be listed in an order: no index has it. Null: they can. */
export function orderProblem(order: JobOrder, phases: readonly string[]): string | null {
  if (order !== "held desc") return null;
  const isBounded = phases.length > 0 && phases.every((phase) => ADMITTED_PHASES.includes(phase));
  return isBounded ? null : `held desc needs a filter by phases, and allows only ${ADMITTED_PHASES.join(", ")}`;
}

/** Asks for one page of a list of jobs. */
export type JobQuery = {
  readonly filter: JobFilter;
  readonly order: JobOrder;
  /** The page has at most so many jobs; fewer if they would be more than `PAGE_BYTES_MAX`. */
  readonly pageSize: number;
  /** The cursor that the previous page returned. Null: the first page. */
  readonly after: string | null;
  /** Omitted: FULL. */
  readonly view?: JobView;
};

/** A job of a page, and the cursor of the page that begins after it. */
export type ListedJob = ShownJob & { readonly cursor: string };

/** One page of jobs. `next` is null on the last page. `total` counts the jobs that pass the filter, up to a bound. */
export type JobPage = { readonly jobs: readonly ListedJob[]; readonly next: string | null; readonly total: number };
