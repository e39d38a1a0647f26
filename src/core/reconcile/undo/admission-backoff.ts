import { doublingMs } from "../../../runtime/doubling.ts";
import { preemptionBackoffMs } from "../../job/preemption.ts";
import type { AdmissionBackoff, StartReason } from "../../job/status.ts";

const AFTER_START_TIMEOUT = { firstMs: 30_000, longestMs: 600_000 };
/** The longest backoff after a start timeout. */
export const AFTER_START_TIMEOUT_MS_MAX = AFTER_START_TIMEOUT.longestMs;

/**
 * The backoff after a gang's pods did not start in time. Each such admission in a row doubles the wait. `reason`: why
 * they can never start; null if they may.
 */
export function afterStartTimeout(
  before: AdmissionBackoff | null,
  of: {
    readonly cluster: string;
    readonly why: string;
    readonly reason: StartReason | null;
    /** True: the gang was a part, which waited for the rest. */
    readonly whole: boolean;
    readonly nowMs: number;
  },
): AdmissionBackoff {
  const { cluster, why, reason, whole, nowMs } = of;
  const undone = before?.undone ?? 0;
  return {
    undone: undone + 1,
    notBeforeMs: nowMs + doublingMs(AFTER_START_TIMEOUT, undone),
    lastCluster: cluster,
    ...(why === "" ? {} : { why }),
    ...(whole || before?.whole ? { whole: true } : {}),
    ...(reason === null ? {} : { failedStarts: { reason, count: failedStarts(before, reason) + 1 } }),
  };
}

/** How many starts in a row have failed for this reason. */
function failedStarts(before: AdmissionBackoff | null, reason: StartReason): number {
  return before?.failedStarts?.reason === reason ? before.failedStarts.count : 0;
}

/** The backoff of a gang that is preempted, and was so often before. */
export function afterPreemption(
  before: AdmissionBackoff | null,
  { preemptions, why, nowMs }: { readonly preemptions: number; readonly why: string; readonly nowMs: number },
): AdmissionBackoff {
  return afterRun(before, { notBeforeMs: nowMs + preemptionBackoffMs(preemptions + 1), why });
}

/** The backoff of a gang whose admission is undone for another reason than its start. Its failed starts still count. */
export function afterRun(
  before: AdmissionBackoff | null,
  { notBeforeMs, why }: { readonly notBeforeMs: number; readonly why: string },
): AdmissionBackoff {
  return {
    undone: before?.undone ?? 0,
    notBeforeMs,
    why,
    ...(before?.whole ? { whole: true } : {}),
    ...(before?.failedStarts === undefined ? {} : { failedStarts: before.failedStarts }),
  };
}
