/** What ExplainJob answers, as the rows that the page of a job shows. */
import { clusterName } from "../../../../src/core/job/cluster-text.ts";
import type { ClusterRefusal, ExplainJobResponse, PodObstacle } from "../../../../src/gen/gangway/v1/job_service_pb.ts";
import {
  PodObstacle_Kind,
  type QuotaLevel,
  QuotaLevelSchema,
  type QuotaRefusal,
} from "../../../../src/gen/gangway/v1/job_service_pb.ts";
import { msOf } from "../../parts/time-text.ts";
import { jobPath } from "../../router/path.ts";

export type Why = {
  readonly summary: string;
  readonly position: number;
  readonly effectivePriority: number;
  readonly evaluatedMs: number | null;
  readonly retryMs: number | null;
  readonly quotas: readonly WhyQuota[];
  readonly clusters: readonly WhyCluster[];
  readonly concerns: readonly string[];
  readonly problems: readonly string[];
};

export type WhyQuota = {
  /** `queue research` */
  readonly level: string;
  readonly flavor: string;
  readonly reason: string;
  readonly need: string;
  readonly used: string;
  readonly limit: string;
  readonly reserved: string;
  readonly holders: readonly WhyHolder[];
};

/** `href` null: an external caller, or a job that the caller may not see. */
export type WhyHolder = { readonly text: string; readonly href: string | null };

export type WhyCluster = {
  readonly cluster: string;
  readonly flavor: string;
  readonly reason: string;
  readonly need: number;
  readonly have: number;
  readonly message: string;
  /** The node that is nearest to taking the next pod. Empty: nodes are not in the way. */
  readonly nearest: string;
  readonly obstacles: readonly string[];
};

export function whyOf(answer: ExplainJobResponse): Why {
  return {
    summary: answer.summary,
    position: answer.position,
    effectivePriority: answer.effectivePriority,
    evaluatedMs: msOf(answer.evaluatedAt),
    retryMs: msOf(answer.retryAt),
    quotas: answer.quotas.map(quotaOf),
    clusters: answer.clusters.map(clusterOf),
    concerns: answer.concerns.map(({ reason, message }) => `${reason}: ${message}`),
    problems: answer.podProblems.map(
      ({ pods, replicaType, reason, message }) => `${pods} × ${replicaType}: ${reason}: ${message}`,
    ),
  };
}

function quotaOf({ level, name, flavor, reason, need, used, limit, reserved, heldBy }: QuotaRefusal): WhyQuota {
  return {
    level: `${levelWord(level)} ${name}`.trim(),
    flavor,
    reason,
    need: String(need),
    used: String(used),
    limit: String(limit),
    reserved: String(reserved),
    holders: heldBy.map(holderOf),
  };
}

function levelWord(level: QuotaLevel): string {
  const name = QuotaLevelSchema.values.find(({ number }) => number === level)?.localName ?? "";
  return name === "UNSPECIFIED" ? "queue" : name.toLowerCase();
}

/** Holders are `namespace/name`, `caller NAME`, or words in place of a name that the caller may not learn. */
export function holderOf(text: string): WhyHolder {
  const [, namespace, name] = /^([a-z0-9-]+)\/([a-z0-9-]+)$/.exec(text) ?? [];
  return { text, href: namespace === undefined || name === undefined ? null : jobPath({ namespace, name }) };
}

function clusterOf({
  cluster,
  simulated,
  flavor,
  reason,
  need,
  have,
  message,
  blockedPod,
}: ClusterRefusal): WhyCluster {
  const others = (blockedPod?.nodes ?? 0) > 1 ? ` and ${(blockedPod?.nodes ?? 0) - 1} like it` : "";
  return {
    cluster: clusterName({ name: cluster, simulated }),
    flavor,
    reason,
    need,
    have,
    message,
    nearest: blockedPod === undefined || blockedPod.node === "" ? "" : `${blockedPod.node}${others}`,
    obstacles: blockedPod?.obstacles.map(obstacleText) ?? [],
  };
}

export function obstacleText({ kind, name, need, available, allocatable, flavor }: PodObstacle): string {
  switch (kind) {
    case PodObstacle_Kind.RESOURCE:
      return `${name}: needs ${need}, has ${available} of ${allocatable} free`;
    case PodObstacle_Kind.LABEL:
      return `lacks the label ${name}${flavor === "" ? "" : ` of ${flavor}`}`;
    case PodObstacle_Kind.AFFINITY:
      return name === "" ? "no node can meet the pod's affinity" : `does not meet ${name}`;
    case PodObstacle_Kind.TAINT:
      return `has the taint ${name}`;
    case PodObstacle_Kind.UNSCHEDULABLE:
      return "takes no new pods now";
    default:
      return name;
  }
}
