/** A job that has stopped workers is set aside: no step reads its templates until it is resumed. */
import type { JobStatus } from "./status.ts";

/** How often a job may be resumed within a day after it was set aside, by everyone who may change it. */
export const RESUMES_A_DAY = 3;
const DAY_MS = 86_400_000;

export function isSetAside({ status }: { readonly status: Pick<JobStatus, "setAside"> }): boolean {
  return status.setAside !== undefined;
}

/** The times of the last day at which a job was resumed after it had been set aside. */
export function resumesOfDay({ setAsideResumesMs = [] }: JobStatus, nowMs: number): readonly number[] {
  return setAsideResumesMs.filter((atMs) => nowMs - atMs < DAY_MS);
}

/** When the job was last resumed after it had been set aside. Null: not within the last day. */
export function lastResumeMs({ status }: { readonly status: Pick<JobStatus, "setAsideResumesMs"> }): number | null {
  return status.setAsideResumesMs?.at(-1) ?? null;
}

/** The status of a job that is no longer set aside. */
export function withoutSetAside(status: JobStatus, nowMs: number): JobStatus {
  const { setAside: _ended, ...rest } = status;
  return { ...rest, setAsideResumesMs: [...resumesOfDay(status, nowMs), nowMs] };
}
