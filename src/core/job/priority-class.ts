import type { JobSpec } from "./spec.ts";

/** Whether jobs of a class may preempt others. `NEVER`: they wait until there is room. */
export type PreemptionPolicy = "LOWER_PRIORITY" | "NEVER";

/** The part of a priority class that a job copies. */
export type JobPriorityClass = {
  readonly name: string;
  readonly value: number;
  readonly preemptionPolicy: PreemptionPolicy;
};

/** The members of a spec that come from a priority class, beside the priority. */
export function copiedClass(of: JobPriorityClass | null): Pick<JobSpec, "priorityClassName" | "preemptionPolicy"> {
  if (of === null) return {};
  const { name: priorityClassName, preemptionPolicy } = of;
  return { priorityClassName, ...(preemptionPolicy === "NEVER" ? { preemptionPolicy } : {}) };
}
