import type { JobSpec, ReplicaSpec, RunPolicy } from "./spec.ts";
import type { Attempts, JobStatus } from "./status.ts";

const FAILURES = 1;

/**
 * Whether pods that are started now may be taken away for others. A job that the system has failed too often that way is not: the next
 * attempts run where nobody interrupts them. It never becomes interruptible again. Source: Flyte's `interruptible-failure-threshold`.
 */
export function isInterruptible(
  { interruptible = false, interruptibleFailureThreshold = FAILURES }: RunPolicy,
  { system }: Pick<Attempts, "system">,
): boolean {
  return interruptible && system < interruptibleFailureThreshold;
}

/** A job's spec with the templates that pods get which are started now: those of an interruptible job change once it is not any more. */
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
