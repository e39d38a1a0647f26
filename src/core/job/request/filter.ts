import { currentAdmission, type Job, liveAdmission } from "../job.ts";
import { hasLabels } from "../labels.ts";
import { isTerminal, type JobPhase } from "../status.ts";

/** Selects jobs for lists, counts and watches. A job must pass every member. An empty or null member passes all. */
export type JobFilter = {
  readonly namespace: string;
  readonly names: readonly string[];
  readonly kinds: readonly string[];
  readonly phases: readonly string[];
  readonly queue: string;
  readonly cluster: string | null;
  /** The namespaces of which jobs are shown. Omitted or null: all. */
  readonly namespaces?: readonly string[] | null;
  /** The queues of which jobs pass. Omitted or null: all. */
  readonly queues?: readonly string[] | null;
  /** Labels that the job must have. */
  readonly labels: Readonly<Record<string, string>>;
  readonly createdBy?: readonly string[];
  /** Why the job waits, by `waitReason`. Jobs that do not wait do not pass. */
  readonly reasons?: readonly string[];
  readonly namePrefix?: string;
  /** A flavor of the live admission. */
  readonly flavor?: string;
  /** The jobs that pass, by their uids. Omitted or null: all. */
  readonly uids?: readonly string[] | null;
  readonly project?: string;
  readonly createdSinceMs?: number | null;
  readonly createdBeforeMs?: number | null;
  /** Jobs that have not ended do not pass. */
  readonly endedSinceMs?: number | null;
};

/** The phases in which a job has a live admission. */
export const ADMITTED_PHASES: readonly JobPhase[] = ["ADMITTED", "STARTING", "RUNNING", "RESTARTING"];

/** The facts about a job that a filter checks and that may change. The others are fixed. */
export type Changing = {
  readonly phase: string;
  readonly cluster: string | null;
  /** Null: the job's present labels. */
  readonly labels?: Readonly<Record<string, string>> | null;
};

/** A job's phase, and the cluster of its current admission: null while it waits, and for a job without pods. */
export function changingOf(job: Job): Changing {
  return { phase: job.status.phase, cluster: currentAdmission(job)?.cluster ?? null };
}

/** Why a job waits: `NotEvaluated` while nothing is recorded. Empty: it does not wait. */
export function waitReason({ status }: Pick<Job, "status">): string {
  return status.phase === "WAITING" ? (status.waiting?.reason ?? "NotEvaluated") : "";
}

/** The flavors of the live admission, each once. */
export function heldFlavors(job: Job): readonly string[] {
  return [...new Set(Object.values(liveAdmission(job)?.flavors ?? {}))];
}

/** True if a job with these changing facts passes the filter. */
export function matchesFilter(filter: JobFilter, job: Job, changing: Changing = changingOf(job)): boolean {
  return (
    passesFixed(filter, job) &&
    oneOf(filter.phases, changing.phase) &&
    (filter.cluster === null || filter.cluster === changing.cluster) &&
    hasLabels(changing.labels ?? job.labels, filter.labels) &&
    oneOf(filter.reasons, waitReason(job)) &&
    passesFlavor(filter, job) &&
    hasEndedSince(filter, job, changing)
  );
}

/** The part of a filter that facts decide which never change. */
function passesFixed(filter: JobFilter, job: Job): boolean {
  const { queue } = job.spec.runPolicy.schedulingPolicy;
  return (
    (filter.namespace === "" || filter.namespace === job.namespace) &&
    (filter.namespaces?.includes(job.namespace) ?? true) &&
    oneOf(filter.names, job.name) &&
    job.name.startsWith(filter.namePrefix ?? "") &&
    (filter.uids?.includes(job.uid) ?? true) &&
    oneOf(filter.kinds, job.spec.kind) &&
    (filter.queue === "" || filter.queue === queue) &&
    (filter.queues?.includes(queue) ?? true) &&
    oneOf(filter.createdBy, job.createdBy) &&
    ((filter.project ?? "") === "" || filter.project === job.project) &&
    job.createTimeMs >= (filter.createdSinceMs ?? Number.NEGATIVE_INFINITY) &&
    job.createTimeMs < (filter.createdBeforeMs ?? Number.POSITIVE_INFINITY)
  );
}

function passesFlavor({ flavor = "" }: JobFilter, job: Job): boolean {
  if (flavor === "") return true;
  return ADMITTED_PHASES.includes(job.status.phase) && heldFlavors(job).includes(flavor);
}

/** A job that had ended before a change has ended at the same time after it. */
function hasEndedSince({ endedSinceMs = null }: JobFilter, { status }: Job, { phase }: Changing): boolean {
  if (endedSinceMs === null) return true;
  return isTerminal({ phase: phase as JobPhase }) && (status.completionTimeMs ?? 0) >= endedSinceMs;
}

function oneOf(wanted: readonly string[] = [], actual: string): boolean {
  return wanted.length === 0 || wanted.includes(actual);
}
