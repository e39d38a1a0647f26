import { isSetAside } from "./set-aside.ts";
import type { JobSpec } from "./spec.ts";
import type { Admission, JobStatus } from "./status.ts";

/** The record of a job. Every decision starts from it. */
export type Job = {
  /** A UUIDv7 that Gangway makes. */
  readonly uid: string;
  readonly namespace: string;
  readonly name: string;
  readonly project: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  readonly createdBy: string;
  readonly createTimeMs: number;
  /** When DeleteJob was called. The record is deleted once no object of the job is left. */
  readonly deleteTimeMs: number | null;
  /** A requested cancellation. Null: none. */
  readonly cancel: { readonly reason: string; readonly atMs: number } | null;
  /** Rises by one with every recorded change. Shown as the resource version. */
  readonly version: number;
  /**
   * The W3C trace context (`traceparent`) of the call that created the job. Later spans join it. Omitted: not traced.
   */
  readonly traceParent?: string;
  readonly spec: JobSpec;
  readonly status: JobStatus;
  /**
   * The admissions that are not history, oldest first. The last one is the current one if its state is `live` or
   * `ended`. The admission under which a job ended stays.
   */
  readonly admissions: readonly Admission[];
};

/** A record with some facts of each admission. */
type Having<A> = { readonly admissions: readonly A[] };

/** The admission that the job runs under or ended under. Null while it waits. */
export function currentAdmission(job: Job): Admission | null {
  const last = job.admissions.at(-1);
  return last !== undefined && last.state !== "undone" ? last : null;
}

/** The admission under which the job's pods run now. Null: it has none. */
export function liveAdmission<A extends Pick<Admission, "state">>({ admissions }: Having<A>): A | null {
  return admissions.find(({ state }) => state === "live") ?? null;
}

/** True for an undone admission without objects and tokens: the record drops it. */
export function isHistory(admission: Admission): boolean {
  return admission.state === "undone" && admission.tokensReleasedMs !== null && admission.goneMs !== null;
}

/** The first ended or undone admission whose pods may still hold its tokens. Null: there is none. */
export function drainingAdmission<A extends Pick<Admission, "state" | "tokensReleasedMs">>({
  admissions,
}: Having<A>): A | null {
  return admissions.find(({ state, tokensReleasedMs }) => state !== "live" && tokensReleasedMs === null) ?? null;
}

/** True while pods of an ended or undone admission may still hold its tokens. */
export function isDraining(job: Job): boolean {
  return drainingAdmission(job) !== null;
}

/** True if the job's live admission is to be undone. */
export function isEvicted({ status, admissions }: Pick<Job, "status" | "admissions">): boolean {
  return status.eviction !== undefined && status.eviction.admission === liveAdmission({ admissions })?.number;
}

/** The members that a job's live admission keeps, by replica type, if it is to give up others. Null: it keeps all. */
export function shrinksTo({
  status,
  admissions,
}: Pick<Job, "status" | "admissions">): Readonly<Record<string, number>> | null {
  const { shrink } = status;
  return shrink !== undefined && shrink.admission === liveAdmission({ admissions })?.number ? shrink.keeps : null;
}

/** True if some pod of a job's live admission was seen running or ended, as the record has it. */
export function hasRun({ phase, replicaStatuses }: Pick<JobStatus, "phase" | "replicaStatuses">): boolean {
  if (phase !== "ADMITTED" && phase !== "STARTING") return true;
  return Object.values(replicaStatuses).some(({ active, succeeded, failed }) => active + succeeded + failed > 0);
}

/** True if the job's live admission is in a lost cluster, and the gang is to run elsewhere once it fits there. */
export function isMoving({ status, admissions }: Pick<Job, "status" | "admissions">): boolean {
  return status.move !== undefined && status.move.admission === liveAdmission({ admissions })?.number;
}

/** True while a job that has not ended must have no pods. */
export function isSuspended({ spec }: Job): boolean {
  return spec.runPolicy.suspend === true;
}

/**
 * True for a waiting job that may reuse another job's result, until that is decided. The planner does not admit it
 * before then.
 */
export function awaitsResult({ spec, status, cancel, deleteTimeMs }: Job): boolean {
  const { cacheKey, suspend } = spec.runPolicy;
  if (cacheKey === undefined || suspend === true || cancel !== null || deleteTimeMs !== null) return false;
  if (isSetAside({ status })) return false;
  return status.phase === "WAITING" && status.cache?.state !== "miss";
}
