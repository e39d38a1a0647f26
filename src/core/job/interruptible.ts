import { type JsonObject, objectAt, stringMapAt } from "../../runtime/json.ts";
import { LABEL } from "./labels.ts";
import type { JobSpec, ReplicaSpec, RunPolicy } from "./spec.ts";
import type { Attempts, JobStatus } from "./status.ts";

const FAILURES = 1;

/** After so many failures of the system, attempts of an interruptible job are not interruptible. */
export function interruptibleFailuresOf({
  interruptibleFailureThreshold = FAILURES,
}: Pick<RunPolicy, "interruptibleFailureThreshold">): number {
  return interruptibleFailureThreshold;
}

/**
 * What the template of a replica type says about itself by an annotation, in place of the run policy. Null: nothing.
 * Other texts than `true` and `false` are refused when a job is created.
 */
export function interruptibleBy(template: JsonObject | undefined): boolean | null {
  const text = stringMapAt(objectAt(template, "metadata"), "annotations")[LABEL.interruptible]?.trim();
  return text === "true" ? true : text === "false" ? false : null;
}

type Policies = {
  readonly runPolicy: Pick<RunPolicy, "interruptible" | "interruptibleFailureThreshold">;
  readonly replicaSpecs: Readonly<Record<string, Pick<ReplicaSpec, "template">>>;
};

/** Whether the pods of a replica type are interruptible, until the system has failed the job too often. */
export function asksInterruptible({ runPolicy, replicaSpecs }: Policies, role: string): boolean {
  return interruptibleBy(replicaSpecs[role]?.template) ?? runPolicy.interruptible ?? false;
}

/** Whether a replica type of the job is. */
export function anyInterruptible(spec: Policies): boolean {
  return Object.keys(spec.replicaSpecs).some((role) => asksInterruptible(spec, role));
}

/**
 * Whether new pods of a job with interruptible replica types are interruptible. After too many failures of the system,
 * a job is never interruptible again. Source: Flyte's `interruptible-failure-threshold`.
 */
export function staysInterruptible(
  runPolicy: Pick<RunPolicy, "interruptibleFailureThreshold">,
  { system }: Pick<Attempts, "system">,
): boolean {
  return system < interruptibleFailuresOf(runPolicy);
}

/** Whether any new pods of the job are interruptible. */
export function isInterruptible(spec: Policies, attempts: Pick<Attempts, "system">): boolean {
  return staysInterruptible(spec.runPolicy, attempts) && anyInterruptible(spec);
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
  if (staysInterruptible(spec.runPolicy, status.attempts) || !anyInterruptible(spec)) return spec;
  const replicas = Object.entries(spec.replicaSpecs).map(([role, replica]): [string, ReplicaSpec] => [
    role,
    { ...replica, template: replica.uninterruptedTemplate ?? replica.template },
  ]);
  return { ...spec, replicaSpecs: Object.fromEntries(replicas) };
}
