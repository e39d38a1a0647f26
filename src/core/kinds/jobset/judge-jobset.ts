/** Decides when a JobSet ends, and when it restarts as a whole. */
import { compileLinear } from "../../../runtime/linear-pattern.ts";
import type { GangState, RuleVerdict } from "../kind-rules.ts";
import { type ChildJob, childJobs, childName } from "./child-jobs.ts";
import type { JobSetSpec } from "./jobset-spec.ts";

/** The first of these that holds, with the words of JobSet. Source: `reconcile` of JobSet. */
export function judgeJobSet(set: JobSetSpec, gang: GangState): RuleVerdict {
  const jobs = childJobs(set, gang);
  const failed = jobs.filter(({ verdict }) => verdict?.kind === "failed");
  if (failed.length > 0) return afterFailure(set, failed, gang);
  if (hasSucceeded(set, jobs)) return { kind: "succeeded", message: "jobset completed successfully" };
  return jobs.some(({ verdict }) => verdict?.kind === "running") ? { kind: "running" } : null;
}

/** Source: `executeFailurePolicy` of JobSet. */
function afterFailure({ failure }: JobSetSpec, failed: readonly ChildJob[], gang: GangState): RuleVerdict {
  const told = (what: string, [first] = failed) => {
    const name = first === undefined ? "" : childName(gang.jobName, first.group.name, first.index);
    const why = first?.verdict?.kind === "failed" ? `: ${first.verdict.message}` : "";
    return `${what} (first failed job: ${name}${why})`;
  };
  if (failure === null) {
    return { kind: "failed", code: "FailedJobs", message: told("jobset failed due to one or more job failures") };
  }
  const met = failure.rules
    .map((rule) => ({ action: rule.action, jobs: failed.filter((job) => matches(rule, job)) }))
    .find(({ jobs }) => jobs.length > 0);
  const { action, jobs } = met ?? { action: "RestartJobSet", jobs: failed };
  const message = told(`applying ${action} failure policy action`, jobs);
  if (action === "FailJobSet") return { kind: "failed", code: "FailJobSetFailurePolicyAction", message };
  if (action === "RestartJobSet" && gang.restarts >= failure.maxRestarts) {
    const why = told("jobset failed due to reaching max number of restarts", jobs);
    return { kind: "failed", code: "ReachedMaxRestarts", message: why };
  }
  return { kind: "restart", counts: action === "RestartJobSet", message };
}

type Rule = NonNullable<JobSetSpec["failure"]>["rules"][number];

function matches({ reasons, patterns, groups }: Rule, { group, verdict }: ChildJob): boolean {
  if (verdict?.kind !== "failed") return false;
  const { code, message } = verdict;
  return (
    (reasons.length === 0 || reasons.includes(code)) &&
    (groups.length === 0 || groups.includes(group.name)) &&
    (patterns.length === 0 || patterns.some((pattern) => compileLinear(pattern)?.test(message) === true))
  );
}

function hasSucceeded({ success }: JobSetSpec, jobs: readonly ChildJob[]): boolean {
  const { operator, groups } = success;
  const targets = jobs.filter(({ group }) => groups.length === 0 || groups.includes(group.name));
  const succeeded = targets.filter(({ verdict }) => verdict?.kind === "succeeded");
  return operator === "Any" ? succeeded.length > 0 : succeeded.length === targets.length;
}
