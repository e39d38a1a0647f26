/** Decides what the failure of a pod of a batch Job does: the pod failure policy, then the limits of one index. */
import type { FailedPod, FailureAction } from "../kind-rules.ts";
import type { BatchSpec, FailureRule } from "./batch-spec.ts";

export const POD_FAILURE_POLICY = "PodFailurePolicy";

/**
 * The first rule that matches decides. Without one, the failure counts, unless the platform ended the pod. Source:
 * `matchPodFailurePolicy` of Kubernetes, which counts evictions and lost nodes too.
 */
export function judgeFailure(batch: BatchSpec, pod: FailedPod): FailureAction {
  for (const [at, rule] of batch.failureRules.entries()) {
    const why = whyMatched(rule, pod);
    if (why === null) continue;
    if (rule.action === "FailJob") {
      return { kind: "endJob", code: POD_FAILURE_POLICY, message: `${why} matching FailJob rule at index ${at}` };
    }
    if (rule.action === "FailIndex") return { kind: "endPart" };
    return rule.action === "Ignore" ? { kind: "retry", counts: false } : counted(batch, pod);
  }
  return pod.lost ? { kind: "retry", counts: false } : counted(batch, pod);
}

function counted({ backoffLimitPerIndex: limit }: BatchSpec, { failures }: FailedPod): FailureAction {
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
