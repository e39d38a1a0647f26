import { doublingMs } from "../../runtime/doubling.ts";
import { preemptionBackoffMs } from "../job/preemption.ts";
import type { AdmissionBackoff } from "../job/status.ts";

const AFTER_START_TIMEOUT = { firstMs: 30_000, longestMs: 600_000 };

/** The backoff after a gang's pods did not start in time. Each such admission in a row doubles the wait. */
export function afterStartTimeout(
  before: AdmissionBackoff | null,
  { cluster, why, nowMs }: { readonly cluster: string; readonly why: string; readonly nowMs: number },
): AdmissionBackoff {
  const undone = before?.undone ?? 0;
  return {
    undone: undone + 1,
    notBeforeMs: nowMs + doublingMs(AFTER_START_TIMEOUT, undone),
    lastCluster: cluster,
    ...(why === "" ? {} : { why }),
  };
}

/** The backoff of a gang that is preempted, and was so often before. */
export function afterPreemption(
  before: AdmissionBackoff | null,
  { preemptions, why, nowMs }: { readonly preemptions: number; readonly why: string; readonly nowMs: number },
): AdmissionBackoff {
  return { undone: before?.undone ?? 0, notBeforeMs: nowMs + preemptionBackoffMs(preemptions + 1), why };
}
