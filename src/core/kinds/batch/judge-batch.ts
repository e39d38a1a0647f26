/** Decides when a batch Job ends, and which of its pods may start. */
import { doublingMs } from "../../../runtime/doubling.ts";
import { countOf, countWithin, readRanges } from "../../../runtime/index-ranges.ts";
import type { GangState, MemberState, PartEnd, RetriedFailure, RuleVerdict } from "../kind-rules.ts";
import type { BatchSpec, SuccessRule } from "./batch-spec.ts";

const REACHED = "Reached expected number of succeeded pods";
/** Of pods that failed. Source: `DefaultJobPodFailureBackOff` and `MaxJobPodFailureBackOff` of Kubernetes. */
const BACKOFF = { firstMs: 10_000, longestMs: 600_000 };

/** What is known of one batch Job. */
export type BatchState = Pick<GangState, "members" | "ends" | "failures" | "groupFailures">;

/** The first of these that holds ends the Job, with the words of Kubernetes. Source: `syncJob` of Kubernetes. */
export function judgeBatch(batch: BatchSpec, state: BatchState): RuleVerdict {
  const [byRule] = state.groupFailures;
  if (byRule !== undefined) return { kind: "failed", code: byRule.code, message: byRule.message };
  return (
    pastLimit(batch, state) ??
    failedIndexes(batch, state) ??
    metPolicy(batch, state) ??
    completed(batch, state) ??
    (state.members.some(({ running }) => running) ? { kind: "running" } : null)
  );
}

function pastLimit({ backoffLimit, restartsInPlace }: BatchSpec, { members, failures }: BatchState): RuleVerdict {
  const restarts = restartsInPlace ? members.reduce((sum, one) => sum + (one.active ? one.restarts : 0), 0) : 0;
  const tooMany = backoffLimit === 0 ? restarts > 0 : restarts >= backoffLimit;
  if (failures <= backoffLimit && !tooMany) return null;
  return { kind: "failed", code: "BackoffLimitExceeded", message: "Job has reached the specified backoff limit" };
}

function failedIndexes(batch: BatchSpec, { members, ends }: BatchState): RuleVerdict {
  const failed = ends.filter(({ end }) => end === "FAILED").length;
  if (batch.backoffLimitPerIndex === null || failed === 0) return null;
  if (batch.maxFailedIndexes !== null && failed > batch.maxFailedIndexes) {
    const message = "Job has exceeded the specified maximal number of failed indexes";
    return { kind: "failed", code: "MaxFailedIndexesExceeded", message };
  }
  const over = failed + succeededOf(ends).length >= (batch.completions ?? members.length);
  return over ? { kind: "failed", code: "FailedIndexes", message: "Job has failed indexes" } : null;
}

function metPolicy({ isIndexed, successRules }: BatchSpec, { ends }: BatchState): RuleVerdict {
  if (!isIndexed || successRules.length === 0) return null;
  const succeeded = succeededOf(ends).map(({ index }) => index);
  const at = successRules.findIndex((rule) => isMet(rule, succeeded));
  return at < 0 ? null : { kind: "succeeded", message: `Matched rules at index ${at}` };
}

/** Source: `matchSuccessPolicy` of Kubernetes. */
function isMet({ succeededIndexes, succeededCount }: SuccessRule, succeeded: readonly number[]): boolean {
  const ranges = succeededIndexes === undefined ? null : readRanges(succeededIndexes);
  if (ranges === null) return succeededCount !== undefined && succeeded.length >= succeededCount;
  return countWithin(ranges, succeeded) >= (succeededCount ?? countOf(ranges));
}

function completed({ completions }: BatchSpec, { members, ends }: BatchState): RuleVerdict {
  const succeeded = succeededOf(ends).length;
  const over = completions === null ? succeeded > 0 && !members.some(({ active }) => active) : succeeded >= completions;
  return over ? { kind: "succeeded", message: REACHED } : null;
}

function succeededOf(ends: readonly PartEnd[]): readonly PartEnd[] {
  return ends.filter(({ end }) => end === "SUCCEEDED");
}

/** A work queue makes no new pods once one has succeeded: the queue is empty then. */
export function mayStartIn({ completions }: BatchSpec, { ends }: BatchState): (member: MemberState) => boolean {
  const isOver = completions === null && succeededOf(ends).length > 0;
  return () => !isOver;
}

/** Failures of one index wait for themselves where they are counted so; else all failures since the last success. */
export function retryDelayMs(
  { backoffLimitPerIndex }: BatchSpec,
  { inRow, failed }: Pick<RetriedFailure, "inRow" | "failed">,
): number {
  return doublingMs(BACKOFF, Math.max(0, (backoffLimitPerIndex === null ? inRow : failed) - 1));
}
