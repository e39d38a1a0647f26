import type { JobSpec, ReplicaSpec, RunPolicy } from "./spec.ts";
import type { Attempts, JobStatus } from "./status.ts";

const FAILURES = 1;

/**
 * Whether new pods of the job are interruptible. After too many failures of the system, a job is never interruptible
 * again. Source: Flyte's `interruptible-failure-threshold`.
 */
export function isInterruptible(
  { interruptible = false, interruptibleFailureThreshold = FAILURES }: RunPolicy,
  { system }: Pick<Attempts, "system">,
): boolean {
  return interruptible && system < interruptibleFailureThreshold;
}

/**
 * The spec of a job with the templates for new pods. They change once an interruptible job stops being interruptible.
 */
export function specNow({
  spec,
  status,
}: {
  readonly spec: JobSpec;
  readonly status: Pick<JobStatus, "attempts">;
}): JobSpec {
  if (spec.runPolicy.interruptible !== true || isInterruptible(spec.runPolicy, status.attempts)) return spec;
  const replicas = Object.entries(spec.replicaSpecs).map(([role, replica]): [string, ReplicaSpec] => [
    role,
    { ...replica, template: replica.uninterruptedTemplate ?? replica.template },
  ]);
  return { ...spec, replicaSpecs: Object.fromEntries(replicas) };
}
