import { currentAdmission, type Job } from "./job.ts";

/** Which jobs a list or a watch is about; empty members ask for nothing. All that are set must hold. */
export type JobFilter = {
  readonly namespace: string;
  readonly names: readonly string[];
  readonly kinds: readonly string[];
  readonly phases: readonly string[];
  readonly queue: string;
  readonly cluster: string;
  /** Labels that the job must carry with these values. */
  readonly labels: Readonly<Record<string, string>>;
};

/** What of a filter can change while a job lives; the rest is fixed when it is made. */
export type Changing = {
  readonly phase: string;
  readonly cluster: string;
  /** Null: as the job carries them. */
  readonly labels?: Readonly<Record<string, string>> | null;
};

/** A job's phase and the cluster of its current admission (empty while it waits). */
export function changingOf(job: Job): Changing {
  return { phase: job.status.phase, cluster: currentAdmission(job)?.cluster ?? "" };
}

/** True if a job with these changing facts passes the filter. */
export function matchesFilter(filter: JobFilter, job: Job, changing: Changing = changingOf(job)): boolean {
  return (
    (filter.namespace === "" || filter.namespace === job.namespace) &&
    oneOf(filter.names, job.name) &&
    oneOf(filter.kinds, job.spec.kind) &&
    oneOf(filter.phases, changing.phase) &&
    (filter.queue === "" || filter.queue === job.spec.runPolicy.schedulingPolicy.queue) &&
    (filter.cluster === "" || filter.cluster === changing.cluster) &&
    Object.entries(filter.labels).every(([key, value]) => (changing.labels ?? job.labels)[key] === value)
  );
}

function oneOf(wanted: readonly string[], actual: string): boolean {
  return wanted.length === 0 || wanted.includes(actual);
}
