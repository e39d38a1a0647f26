import type { Job } from "../../gen/gangway/v1/job_pb.ts";
import type { Run } from "../run/run-command.ts";

/**
 * The option with which the next command reaches these jobs, with a blank before it. Empty: it needs none. An option
 * of this command does not hold for the next one.
 */
export function namespaceFlag(
  { namespace, isNamespaceGiven }: Pick<Run, "namespace" | "isNamespaceGiven">,
  jobs: readonly Pick<Job, "metadata">[],
): string {
  const namespaces = new Set(jobs.map(({ metadata }) => metadata?.namespace ?? ""));
  if (namespaces.size > 1) return " -A";
  const [only = namespace] = namespaces;
  return only === namespace && !isNamespaceGiven ? "" : ` -n ${only}`;
}
