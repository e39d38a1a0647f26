import type { Job } from "./job.ts";
import type { CleanPodPolicy } from "./spec.ts";

/** The clean-pod policy in effect: `cleanPodPolicyAtLimit` once a limit has ended the job, else `cleanPodPolicy`. */
export function cleanPodPolicyOf({ spec, status }: Pick<Job, "spec" | "status">): CleanPodPolicy {
  const { cleanPodPolicy, cleanPodPolicyAtLimit = cleanPodPolicy } = spec.runPolicy;
  return status.failure?.limit === true ? cleanPodPolicyAtLimit : cleanPodPolicy;
}
