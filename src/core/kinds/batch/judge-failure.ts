/** Decides what the failure of a pod of a batch Job does: the pod failure policy, then the limits of one index. */
import type { FailedPod, FailureAction } from "../kind-rules.ts";
import type { BatchSpec, FailureRule } from "./batch-spec.ts";

export const POD_FAILURE_POLICY = "PodFailurePolicy";

/**
 * What a failed pod does. Without a rule, what the platform ended does not count, and everything else does. Source:
 * `matchPodFailurePolicy` of Kubernetes, which counts evictions and lost nodes too.
 */
export function judgeFailure(batch: BatchSpec, pod: FailedPod): FailureAction {
  return failureByRule(batch, pod) ?? (pod.lost ? { kind: "retry", counts: false } : countedFailure(batch, pod));
}

/** What the first rule of the pod failure policy that matches says. Null: none matches. */
export function failureByRule(batch: BatchSpec, pod: FailedPod): FailureAction | null {
  for (const [at, rule] of batch.failureRules.entries()) {
    const why = whyMatched(rule, pod);
    if (why === null) continue;
    if (rule.action === "FailJob") {
      return { kind: "endGroup", code: POD_FAILURE_POLICY, message: `${why} matching FailJob rule at index ${at}` };
    }
    if (rule.action === "FailIndex") return { kind: "endPart" };
    return rule.action === "Ignore" ? { kind: "retry", counts: false } : countedFailure(batch, pod);
  }
  return null;
}

/** What a failure does that counts. */
function countedFailure({ backoffLimitPerIndex: limit }: BatchSpec, { failures }: FailedPod): FailureAction {
  return limit !== null && failures + 1 > limit ? { kind: "endPart" } : { kind: "retry", counts: true };
}

/** The words of Kubernetes for what a rule matches. Null: it does not match. */
function whyMatched({ onExitCodes, onPodConditions }: FailureRule, pod: FailedPod): string | null {
  if (onExitCodes !== undefined) {
    const { containerName, isIn, values } = onExitCodes;
    const exit = pod.exits.find(({ container, exitCode }) => {
      const isMeant = containerName === undefined || container === containerName;
      return isMeant && exitCode !== 0 && values.includes(exitCode) === isIn;
    });
    if (exit === undefined) return null;
    return `Container ${exit.container} for pod ${pod.name} failed with exit code ${exit.exitCode}`;
  }
  const met = onPodConditions.find((wanted) =>
    pod.conditions.some(({ type, status }) => type === wanted.type && status === wanted.status),
  );
  return met === undefined ? null : `Pod ${pod.name} has condition ${met.type}`;
}
