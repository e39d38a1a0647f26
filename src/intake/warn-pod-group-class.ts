import type { FieldNote, SentJob } from "../core/job/request/sent.ts";
import { requestPath } from "./request-path.ts";

/** Warns that the class of a job's PodGroup gives the job no priority, if the job names none. */
export function warnPodGroupClass({ spec }: SentJob): readonly FieldNote[] {
  const { priority, priorityClassName = "", runPolicy } = spec;
  const named = runPolicy?.schedulingPolicy?.priorityClass ?? "";
  if (named === "" || priority !== undefined || priorityClassName !== "") return [];
  const message = `gives the job no priority: ${named} is the class of its PodGroup, not its priority class`;
  return [{ field: requestPath(["spec", "runPolicy", "schedulingPolicy", "priorityClass"]), message }];
}
