import { isSuspended, type Job } from "./job.ts";
import type { Nomination } from "./preemption.ts";
import { isSetAside } from "./set-aside.ts";
import type { JobStatus } from "./status.ts";

/** A job's nomination while it counts: the job waits, and nobody has asked for its end. Null: there is none. */
export function nominationOf(job: Job): Nomination | null {
  return canBeNominated(job) ? (job.status.nomination ?? null) : null;
}

/** True for a job that waits to be admitted. */
export function canBeNominated(job: Job): boolean {
  const ends = job.cancel !== null || job.deleteTimeMs !== null;
  return job.status.phase === "WAITING" && !ends && !isSuspended(job) && !isSetAside(job);
}

/** Ends a nomination, if there is one. */
export function withoutNomination(status: JobStatus): JobStatus {
  const { nomination: _ended, ...rest } = status;
  return rest;
}

/** True if a change of a job ends its nomination. */
export function endsNomination(before: Job, after: Job): boolean {
  return before.status.nomination !== undefined && nominationOf(after) === null;
}
