import type { Job } from "../job/job.ts";
import type { ClusterRefusal, QuotaRefusal, Refusal } from "./plan-types.ts";

/** All that was found in the way of a gang. */
export type Findings = {
  readonly quotas: readonly QuotaRefusal[];
  readonly clusters: readonly ClusterRefusal[];
  /** True if no choice of flavors was left once quotas had been asked. */
  readonly stoppedByQuota: boolean;
};

/** Of the reasons for which clusters refuse, the one that is nearest to an admission is the gang's. */
const NEAREST_FIRST = ["NoCapacity", "Draining", "TooLarge"];

/** A refusal for a reason that needs no look at quotas or clusters. */
export function refuse(job: Job, why: { reason: string; message: string; retryAtMs?: number }): Refusal {
  const { reason, message, retryAtMs = null } = why;
  return { jobUid: job.uid, jobVersion: job.version, reason, message, clusters: [], quotas: [], retryAtMs };
}

/** The refusal that findings come to: the first stage that stopped every alternative gives the reason. */
export function refuseFor(job: Job, findings: Findings): Refusal {
  const { clusters, quotas, stoppedByQuota } = findings;
  const why = stoppedByQuota ? quotaReason(quotas) : clusterReason(clusters);
  return { ...refuse(job, why), clusters, quotas };
}

/** Any resource without a quota stops all; then one that asks more than every limit; else waiting helps. */
function quotaReason(quotas: readonly QuotaRefusal[]): { reason: string; message: string } {
  const missing = quotas.find((quota) => quota.reason === "NoQuota");
  if (missing !== undefined) {
    return { reason: "NoQuota", message: `queue ${missing.queue} has no quota for ${missing.flavor}` };
  }
  const exhausted = quotas.filter((quota) => quota.reason === "QuotaExhausted");
  const shown = exhausted.length > 0 ? exhausted : quotas;
  const reason = exhausted.length > 0 ? "QuotaExhausted" : "AboveQuota";
  return { reason, message: shown.map(quotaWords).join("; ") };
}

function quotaWords(quota: QuotaRefusal): string {
  const { queue, flavor, need, used, limit, heldBy } = quota;
  if (quota.reason === "AboveQuota") return `needs ${need} of ${flavor}; queue ${queue} may use ${limit} at most`;
  const holders = heldBy.length > 0 ? ` (held by ${heldBy.join(", ")})` : "";
  return `needs ${need} of ${flavor}; queue ${queue} uses ${used} of ${limit}${holders}`;
}

function clusterReason(clusters: readonly ClusterRefusal[]): { reason: string; message: string } {
  for (const reason of NEAREST_FIRST) {
    const found = clusters.filter((cluster) => cluster.reason === reason);
    if (found.length > 0) return { reason, message: clusterWords(found) };
  }
  if (clusters.length === 0) return { reason: "NoCluster", message: "there is no cluster" };
  const each = clusters.map((cluster) => `${cluster.cluster}: ${cluster.message}`);
  return { reason: "NoCluster", message: `no cluster can be used: ${each.join("; ")}` };
}

/** The cluster that came nearest speaks for all. */
function clusterWords(found: readonly ClusterRefusal[]): string {
  const [nearest] = [...found].sort((a, b) => b.have - a.have);
  if (nearest === undefined) return "";
  return nearest.reason === "Draining" ? `${nearest.cluster}: ${nearest.message}` : nearest.message;
}
