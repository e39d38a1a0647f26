import type { Job } from "../job.ts";
import { type JobPhase, TERMINAL_PHASES } from "../status.ts";
import type { Concern } from "./concerns.ts";
import { ADMITTED_PHASES, type JobFilter } from "./filter.ts";

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

export type JobOrder =
  | "create_time"
  | "create_time desc"
  | "name"
  | "priority desc"
  | "held desc"
  | "complete_time desc"
  | "wait_since";

/** The phases that a filter must be limited to, for orders that only jobs in these have. */
const PHASES_OF_ORDERS: Readonly<Partial<Record<JobOrder, readonly JobPhase[]>>> = {
  "held desc": ADMITTED_PHASES,
  "complete_time desc": TERMINAL_PHASES,
  wait_since: ["WAITING"],
};

/** Why the jobs of a filter cannot be listed in an order. Null: they can. */
export function orderProblem(order: JobOrder, { phases, endedSinceMs = null }: JobFilter): string | null {
  const allowed: readonly string[] | undefined = PHASES_OF_ORDERS[order];
  if (allowed === undefined || (order === "complete_time desc" && endedSinceMs !== null)) return null;
  if (phases.length > 0 && phases.every((phase) => allowed.includes(phase))) return null;
  const other = order === "complete_time desc" ? "by ended_since, or " : "";
  return `${order} needs a filter ${other}by phases, and allows only ${allowed.join(", ")}`;
}

/** Since when a job waits, if it does: when it was created, or when its last admission ended. */
export function waitsSinceMs({ status, createTimeMs }: Pick<Job, "status" | "createTimeMs">): number {
  return status.conditions.find(({ type }) => type === "Admitted")?.lastTransitionMs ?? createTimeMs;
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
