/** Counts of jobs by their properties. Dashboards ask for them again and again: every part of an answer is bounded. */

import { TERMINAL_PHASES } from "../status.ts";
import type { JobFilter } from "./filter.ts";

/** A property by which jobs are counted. */
export type JobProperty = "phase" | "queue" | "namespace" | "owner" | "kind" | "cluster" | "flavor" | "reason";

/** An answer has so many groups. */
export const GROUPS_MAX = 200;
/** A group names so many pools. */
export const POOLS_MAX = 50;
/** So many jobs that have ended are counted. */
export const ENDED_MAX = 10_000;
/** Jobs that ended earlier are not counted. */
export const ENDED_AGE_MS_MAX = 7 * 24 * 3_600_000;

export type CountQuery = {
  readonly filter: JobFilter;
  /** At most two. */
  readonly groupBy: readonly JobProperty[];
};

/** How many jobs have the same properties. `values` are in the order of `groupBy`. */
export type CountedJobs = {
  readonly values: readonly string[];
  readonly jobs: number;
  /** All replicas of the jobs. */
  readonly pods: number;
  /** What their live admissions hold, by pool. Of a group by flavor, only the flavor. Empty name: other pools. */
  readonly tokens: Readonly<Record<string, number>>;
  /** Null: there is no job. */
  readonly oldestCreateMs: number | null;
};

export type JobCounts = {
  /** Those with the most jobs first; of equal ones, by their values. */
  readonly groups: readonly CountedJobs[];
  /** The groups beyond `GROUPS_MAX`. Null: there are none. */
  readonly rest: CountedJobs | null;
  readonly restGroups: number;
  /** True: more than `ENDED_MAX` jobs that have ended pass the filter. */
  readonly endedCapped: boolean;
  /** Jobs that ended before are not counted. Null: none that has ended is. */
  readonly endedSinceMs: number | null;
};

/** From when on jobs that have ended are counted. Null: they are not, unless the filter asks for them. */
export function countedEndedSince({ phases, endedSinceMs = null }: JobFilter, nowMs: number): number | null {
  const earliestMs = nowMs - ENDED_AGE_MS_MAX;
  if (endedSinceMs !== null) return Math.max(endedSinceMs, earliestMs);
  const asked: readonly string[] = TERMINAL_PHASES;
  return phases.some((phase) => asked.includes(phase)) ? earliestMs : null;
}
