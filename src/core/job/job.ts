import type { JobSpec } from "./spec.ts";
import type { Admission, JobStatus } from "./status.ts";

/** A job as the record has it: what every decision starts from. */
export type Job = {
  /** UUIDv7, ours. */
  readonly uid: string;
  readonly namespace: string;
  readonly name: string;
  readonly project: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  readonly createdBy: string;
  readonly createTimeMs: number;
  /** When DeleteJob was called; the record goes once nothing of the job is left. */
  readonly deleteTimeMs: number | null;
  /** A cancel that was acknowledged and is not carried out yet, or was. */
  readonly cancel: { readonly reason: string; readonly atMs: number } | null;
  /** Grows by one with every recorded change; shown as the resource version. */
  readonly version: number;
  /** The W3C trace context (`traceparent`) of the call that made it, which later spans are joined to; absent where that was not traced. */
  readonly traceParent?: string;
  readonly spec: JobSpec;
  readonly status: JobStatus;
  /**
   * The admissions that are no history yet, oldest first. The last one is the current one if its state is `live` or `ended`: the
   * one that a job ended under stays.
   */
  readonly admissions: readonly Admission[];
};

/** The admission that the job runs under or ended under; null while it waits. */
export function currentAdmission(job: Job): Admission | null {
  const last = job.admissions.at(-1);
  return last !== undefined && last.state !== "undone" ? last : null;
}

/** True for an admission that was undone and of which nothing is left, neither in its cluster nor in the ledger: the job's record drops it. */
export function isHistory(admission: Admission): boolean {
  return admission.state === "undone" && admission.tokensReleasedMs !== null && admission.goneMs !== null;
}

/** True while pods of an ended or undone admission may still hold its tokens. */
export function isDraining(job: Job): boolean {
  return job.admissions.some((admission) => admission.state !== "live" && admission.tokensReleasedMs === null);
}
