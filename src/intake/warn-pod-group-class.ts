import type { FieldNote, SentJob } from "../core/job/sent.ts";
import { requestPath } from "./request-path.ts";

/** Warns that the class of a job's PodGroup gives the job no priority, if the job names none. */
export function warnPodGroupClass({ spec }: SentJob): readonly FieldNote[] {
  const { priority, priorityClassName = "", runPolicy } = spec;
  const named = runPolicy?.schedulingPolicy?.priorityClass ?? "";
  if (named === "" || priority !== undefined || priorityClassName !== "") return [];
  const message = `gives no priority: ${named} is the class of the PodGroup; the job's is spec.priority_class_name`;
  return [{ field: requestPath(["spec", "runPolicy", "schedulingPolicy", "priorityClass"]), message }];
}
