import { FOREIGN_BYTES_MAX, foreignText } from "../../../runtime/foreign-text.ts";
import { clusterName } from "../../job/cluster-text.ts";
import { amountText } from "../../quota/allocations.ts";
import type { Scope, Violation } from "../../quota/counters.ts";
import { freezeWords } from "../../quota/freeze.ts";
import type { PlanGang } from "../model/plan-gang.ts";
import type { ClusterRefusal, QuotaRefusal, Refusal } from "../model/plan-types.ts";
import { frozenReason } from "../usage/quota-levels.ts";

/** Everything that keeps a gang from being admitted. */
export type GangObstacles = {
  readonly quotas: readonly QuotaRefusal[];
  readonly clusters: readonly ClusterRefusal[];
  /** True if quotas left no choice of flavors. */
  readonly stoppedByQuota: boolean;
};

/** Of the reasons for which clusters refuse a gang, the gang's reason is the one that is nearest to an admission. */
const REASON_RANK: Readonly<Record<string, number>> = {
  DomainFull: 0,
  NoCapacity: 1,
  Draining: 2,
  TooLarge: 3,
};

/** A refusal without quotas and clusters. */
export function refuse(
  gang: Pick<PlanGang, "uid" | "generation">,
  why: { reason: string; message: string; retryAtMs?: number },
): Refusal {
  const { reason, retryAtMs = null } = why;
  const message = foreignText(why.message);
  return { jobUid: gang.uid, generation: gang.generation, reason, message, clusters: [], quotas: [], retryAtMs };
}

/** The refusal of a gang behind the head of a strict queue, with everything that the head lacks. */
export function withHead(refusal: Refusal, head: Refusal): Refusal {
  const message = foreignText(`${refusal.message}: ${head.message}`);
  return { ...refusal, message, clusters: head.clusters, quotas: head.quotas };
}

const CHANGED = "; this has changed, and the planner is about to look at it again";

/** The refusal of a gang whose reason holds no more. */
export function changed(refusal: Refusal): Refusal {
  const message = foreignText(refusal.message, FOREIGN_BYTES_MAX - CHANGED.length) + CHANGED;
  return { ...refusal, message };
}

/**
 * The refusal for these obstacles. Its reason comes from quotas if they stopped every flavor that a cluster could take,
 * else from clusters.
 */
export function refuseFor(gang: PlanGang, obstacles: GangObstacles): Refusal {
  const { clusters, quotas, stoppedByQuota } = obstacles;
  const waitsForQuota = stoppedByQuota || (limitedOf(quotas).length > 0 && areImpossible(clusters));
  const why = waitsForQuota ? quotaReason(quotas) : clusterReason(clusters);
  return { ...refuse(gang, why), clusters, quotas };
}

const NEVER_TAKES: ReadonlySet<string> = new Set(["TooLarge", "NoSuchFlavor", "NoSuchLevel"]);

/** True if no cluster could ever take the flavors that were tried. Other flavors, without quota now, may do better. */
function areImpossible(clusters: readonly ClusterRefusal[]): boolean {
  const tried = clusters.filter(({ reason }) => reason !== "NotSelected");
  return tried.length > 0 && tried.every(({ reason }) => NEVER_TAKES.has(reason));
}

/**
 * The refusal of a gang that the plan has capacity for but the counters have not. The counters know grants and places
 * in waiting lines that no snapshot shows.
 */
export function refuseForTokens(
  gang: Pick<PlanGang, "uid" | "generation" | "queue">,
  { violation, inLine }: { readonly violation: Violation; readonly inLine: boolean },
): Refusal {
  const { scope, used, limit, requested, reservedForHead, frozen = false } = violation;
  const { pool } = scope;
  const { queue } = gang;
  const lacks = requested <= limit - used ? "Reserved" : "QuotaExhausted";
  const reason = frozen ? frozenReason(scope) : lacks;
  const amounts = { need: requested, used, limit, reserved: reservedForHead };
  const quota: QuotaRefusal = { queue, flavor: pool, scope, reason, ...amounts, heldBy: [] };
  const message = `${quotaMessage(quota)}${inLine ? waitingLineMessage([pool]) : ""}`;
  return { ...refuse(gang, { reason, message }), quotas: [quota] };
}

/** The end of the message for the gang that has the planner's place in the waiting line. */
export function waitingLineMessage(pools: readonly string[]): string {
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
  const hopeful = limitedOf(quotas);
  if (hopeful.length === 0) {
    const never = quotas.filter(({ reason }) => reason === "AboveQuota");
    return { reason: "AboveQuota", message: never.map(quotaMessage).join("; ") };
  }
  const most = ["PoolFrozen", "QueueFrozen", "QuotaExhausted"].find((one) =>
    hopeful.some(({ reason }) => reason === one),
  );
  return { reason: most ?? "Reserved", message: hopeful.map(quotaMessage).join("; ") };
}

/** The refusals of flavors that may allow the request once others use less. */
function limitedOf(quotas: readonly QuotaRefusal[]): readonly QuotaRefusal[] {
  const isNever = ({ reason }: QuotaRefusal) => reason === "AboveQuota" || reason === "NoQuota";
  const hopeless = new Set(quotas.filter(isNever).map(({ flavor }) => flavor));
  return quotas.filter(({ flavor }) => !hopeless.has(flavor));
}

function quotaMessage(quota: QuotaRefusal): string {
  const { flavor, used, limit, reserved, heldBy } = quota;
  const needs = `needs ${amountText(quota.need)} of ${flavor}; ${scopeMessage(quota.scope)}`;
  if (quota.reason.endsWith("Frozen")) return `${needs} is frozen${quota.freeze ? freezeWords(quota.freeze) : ""}`;
  if (quota.reason === "AboveQuota") return `${needs} may use ${limit} at most`;
  const uses = `${needs} uses ${used} of ${limit}`;
  if (quota.reason === "Reserved") {
    return `${uses}, and keeps ${reserved} for ${heldBy.join(", ") || "the first of its waiting line"}`;
  }
  const held = heldBy.length > 0 ? `${uses} (held by ${heldBy.join(", ")})` : uses;
  const kept = keptForNominees(quota);
  return kept > 0 ? `${held}, and keeps ${kept} for nominees` : held;
}

/** How much a level keeps for nominees, if only that is in the way. 0: its use is in the way already. */
export function keptForNominees(quota: Pick<QuotaRefusal, "need" | "used" | "limit" | "booked">): number {
  const { need, used, limit, booked = 0 } = quota;
  return need <= limit - used ? booked : 0;
}

function scopeMessage(scope: Scope): string {
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
  if (clusters.length === 0) return { reason: "NoCluster", message: "there is no cluster" };
  const nearest = nearestRefusal(clusters);
  const { reason, message } = nearest;
  if (REASON_RANK[reason] !== undefined) {
    return { reason, message: reason === "Draining" ? `${nameOf(nearest)}: ${message}` : message };
  }
  const each = clusters.map((one) => `${nameOf(one)}: ${one.message}`);
  return { reason: "NoCluster", message: `no cluster can be used: ${each.join("; ")}` };
}

/**
 * The refusal that is nearest to an admission, of at least one. It has the nearest reason, then capacity for most of
 * the gang, then the fewest obstacles for the next pod.
 */
export function nearestRefusal(refusals: readonly ClusterRefusal[]): ClusterRefusal {
  return refusals.reduce((best, one) => (isNearer(one, best) ? one : best));
}

function nameOf(refusal: ClusterRefusal): string {
  return clusterName({ ...refusal, name: refusal.cluster });
}

function isNearer(one: ClusterRefusal, other: ClusterRefusal): boolean {
  const rank = ({ reason }: ClusterRefusal) => REASON_RANK[reason] ?? Number.POSITIVE_INFINITY;
  if (rank(one) !== rank(other)) return rank(one) < rank(other);
  if (one.have !== other.have) return one.have > other.have;
  const obstacles = ({ blocked }: ClusterRefusal) => blocked?.obstacles.length || Number.POSITIVE_INFINITY;
  return obstacles(one) < obstacles(other);
}
