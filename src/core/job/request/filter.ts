import { currentAdmission, type Job } from "../job.ts";
import { hasLabels } from "../labels.ts";

/** Selects jobs for a list or a watch. A job must pass every member. An empty or null member passes every job. */
export type JobFilter = {
  readonly namespace: string;
  readonly names: readonly string[];
  readonly kinds: readonly string[];
  readonly phases: readonly string[];
  readonly queue: string;
  readonly cluster: string | null;
  /** The namespaces of which jobs are shown. Omitted or null: all. */
  readonly namespaces?: readonly string[] | null;
  /** Labels that the job must have. */
  readonly labels: Readonly<Record<string, string>>;
};

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

/** True if a job with these changing facts passes the filter. */
export function matchesFilter(filter: JobFilter, job: Job, changing: Changing = changingOf(job)): boolean {
  return (
    (filter.namespace === "" || filter.namespace === job.namespace) &&
    (filter.namespaces?.includes(job.namespace) ?? true) &&
    oneOf(filter.names, job.name) &&
    oneOf(filter.kinds, job.spec.kind) &&
    oneOf(filter.phases, changing.phase) &&
    (filter.queue === "" || filter.queue === job.spec.runPolicy.schedulingPolicy.queue) &&
    (filter.cluster === null || filter.cluster === changing.cluster) &&
    hasLabels(changing.labels ?? job.labels, filter.labels)
  );
}

function oneOf(wanted: readonly string[], actual: string): boolean {
  return wanted.length === 0 || wanted.includes(actual);
}
