import type { Job } from "../job/job.ts";
import type { Scope, Violation } from "../quota/counters.ts";
import type { ClusterRefusal, QuotaRefusal, Refusal } from "./plan-types.ts";

/** Everything that keeps a gang from being admitted. */
export type GangObstacles = {
  readonly quotas: readonly QuotaRefusal[];
  readonly clusters: readonly ClusterRefusal[];
  /** True if quotas left no choice of flavors. */
  readonly stoppedByQuota: boolean;
};

/** Of the reasons for which clusters refuse a gang, the gang's reason is the one that is nearest to an admission. */
const NEAREST_FIRST = ["NoCapacity", "Draining", "TooLarge"];

/** A refusal without quotas and clusters. */
export function refuse(job: Job, why: { reason: string; message: string; retryAtMs?: number }): Refusal {
  const { reason, message, retryAtMs = null } = why;
  return { jobUid: job.uid, jobVersion: job.version, reason, message, clusters: [], quotas: [], retryAtMs };
}

/** The refusal for these obstacles. Its reason comes from quotas if they stopped every flavor, else from clusters. */
export function refuseFor(job: Job, obstacles: GangObstacles): Refusal {
  const { clusters, quotas, stoppedByQuota } = obstacles;
  const why = stoppedByQuota ? quotaReason(quotas) : clusterReason(clusters);
  return { ...refuse(job, why), clusters, quotas };
}

/**
 * The refusal of a gang that the plan has room for but the counters have not. The counters know grants and places in
 * waiting lines that no snapshot shows.
 */
export function refuseForTokens(
  job: Job,
  { violation, inLine }: { readonly violation: Violation; readonly inLine: boolean },
): Refusal {
  const { scope, used, limit, requested, reservedForHead } = violation;
  const { pool } = scope;
  const { queue } = job.spec.runPolicy.schedulingPolicy;
  const reason = requested <= limit - used ? "Reserved" : "QuotaExhausted";
  const amounts = { need: requested, used, limit, reserved: reservedForHead };
  const quota: QuotaRefusal = { queue, flavor: pool, scope, reason, ...amounts, heldBy: [] };
  const message = `${quotaWords(quota)}${inLine ? lineWords([pool]) : ""}`;
  return { ...refuse(job, { reason, message }), quotas: [quota] };
}

/** The end of the message for the gang that has the planner's place in the waiting line. */
export function lineWords(pools: readonly string[]): string {
  return `; it is in the waiting line of ${pools.join(" and ")}`;
}

/**
 * The dominant reason: `NoQuota` if any resource has no quota; `AboveQuota` if no flavor could ever allow the request;
 * else waiting helps.
 */
function quotaReason(quotas: readonly QuotaRefusal[]): { reason: string; message: string } {
  const missing = quotas.find((quota) => quota.reason === "NoQuota");
  if (missing !== undefined) {
    return { reason: "NoQuota", message: `queue ${missing.queue} has no quota for ${missing.flavor}` };
  }
  const never = quotas.filter((quota) => quota.reason === "AboveQuota");
  const hopeless = new Set(never.map(({ flavor }) => flavor));
  const hopeful = quotas.filter(({ flavor }) => !hopeless.has(flavor));
  if (hopeful.length === 0) return { reason: "AboveQuota", message: never.map(quotaWords).join("; ") };
  const exhausted = hopeful.find((quota) => quota.reason === "QuotaExhausted");
  return { reason: exhausted?.reason ?? "Reserved", message: hopeful.map(quotaWords).join("; ") };
}

function quotaWords(quota: QuotaRefusal): string {
  const { flavor, need, used, limit, reserved, heldBy } = quota;
  const needs = `needs ${need} of ${flavor}; ${scopeWords(quota.scope)}`;
  if (quota.reason === "AboveQuota") return `${needs} may use ${limit} at most`;
  const uses = `${needs} uses ${used} of ${limit}`;
  if (quota.reason === "Reserved") {
    return `${uses}, and keeps ${reserved} for ${heldBy.join(", ") || "the first of its waiting line"}`;
  }
  return heldBy.length > 0 ? `${uses} (held by ${heldBy.join(", ")})` : uses;
}

function scopeWords(scope: Scope): string {
  switch (scope.kind) {
    case "pool":
      return `pool ${scope.pool}`;
    case "project":
      return `project ${scope.project}`;
    case "namespace":
      return `namespace ${scope.namespace}`;
    case "queue":
      return `queue ${scope.queue}`;
  }
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

/**
 * The message of the cluster that is nearest to taking the gang, of at least one: it has room for most of it, and then
 * the fewest obstacles for the next pod.
 */
function clusterWords(found: readonly ClusterRefusal[]): string {
  const nearest = found.reduce((best, one) => (isNearer(one, best) ? one : best));
  return nearest.reason === "Draining" ? `${nearest.cluster}: ${nearest.message}` : nearest.message;
}

function isNearer(one: ClusterRefusal, other: ClusterRefusal): boolean {
  if (one.have !== other.have) return one.have > other.have;
  const obstacles = (refusal: ClusterRefusal) => refusal.blocked?.obstacles.length || Number.POSITIVE_INFINITY;
  return obstacles(one) < obstacles(other);
}
