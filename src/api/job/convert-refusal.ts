import type { MessageInitShape } from "@bufbuild/protobuf";
import { obstacleName } from "../../core/plan/explain/blocked-messages.ts";
import { keptForNominees } from "../../core/plan/explain/refuse.ts";
import type { BlockedPod, PodObstacle } from "../../core/plan/model/blocked-pod.ts";
import type { ClusterRefusal, DomainRefusal, QuotaRefusal } from "../../core/plan/model/plan-types.ts";
import type { Scope } from "../../core/quota/counters.ts";
import {
  type BlockedPodSchema,
  type ClusterRefusalSchema,
  type DomainRefusalSchema,
  PodObstacle_Kind as Kind,
  type PodObstacleSchema,
  QuotaLevel,
  type QuotaRefusalSchema,
} from "../../gen/gangway/v1/job_service_pb.ts";
import { toQuantity } from "../cluster/convert-cluster.ts";
import { scopeName } from "../resource-manager/convert-quota.ts";

/** Records of older versions have no scope and no reserved amount: they are about the queue. They name no pod. */
type RecordedQuota = Omit<QuotaRefusal, "scope" | "reserved"> & Partial<Pick<QuotaRefusal, "scope" | "reserved">>;
type RecordedCluster = Omit<ClusterRefusal, "blocked"> & Partial<Pick<ClusterRefusal, "blocked">>;

export function toProtoClusterRefusal(refusal: RecordedCluster): MessageInitShape<typeof ClusterRefusalSchema> {
  const { cluster, simulated = false, reason, message, flavor, need, have, blocked = null } = refusal;
  const pod = blocked === null ? {} : { blockedPod: toProtoBlockedPod(blocked) };
  const domain = refusal.domain === undefined ? {} : { domain: toProtoDomain(refusal.domain) };
  return { cluster, simulated, reason, message, flavor: flavor ?? "", need, have, ...pod, ...domain };
}

function toProtoDomain({ domain, sliceSize, ...of }: DomainRefusal): MessageInitShape<typeof DomainRefusalSchema> {
  return { ...of, domain: domain ?? "", sliceSize: sliceSize ?? 0 };
}

function toProtoBlockedPod(blocked: BlockedPod): MessageInitShape<typeof BlockedPodSchema> {
  return { ...blocked, node: blocked.node ?? "", obstacles: blocked.obstacles.map(toProtoObstacle) };
}

const KIND: Readonly<Record<PodObstacle["kind"], Kind>> = {
  resource: Kind.RESOURCE,
  label: Kind.LABEL,
  affinity: Kind.AFFINITY,
  taint: Kind.TAINT,
  unschedulable: Kind.UNSCHEDULABLE,
};

function toProtoObstacle(obstacle: PodObstacle): MessageInitShape<typeof PodObstacleSchema> {
  const common = { kind: KIND[obstacle.kind], name: obstacleName(obstacle) };
  if (obstacle.kind === "label") return { ...common, flavor: obstacle.flavor ?? "" };
  if (obstacle.kind !== "resource") return common;
  const { resource, need, available, allocatable } = obstacle;
  const [needs, has, all] = [need, available, allocatable].map((milli) => toQuantity(resource, milli));
  return { ...common, need: needs ?? "", available: has ?? "", allocatable: all ?? "" };
}

export function toProtoQuotaRefusal(refusal: RecordedQuota): MessageInitShape<typeof QuotaRefusalSchema> {
  const { queue, flavor, reason, need, used, limit, heldBy, reserved = 0 } = refusal;
  const { scope = { kind: "queue", pool: flavor, queue } } = refusal;
  const amounts = {
    need: BigInt(need),
    used: BigInt(used),
    limit: BigInt(limit),
    reserved: BigInt(reserved + keptForNominees(refusal)),
  };
  return { queue, flavor, level: LEVEL[scope.kind], name: scopeName(scope), reason, ...amounts, heldBy: [...heldBy] };
}

const LEVEL: Readonly<Record<Scope["kind"], QuotaLevel>> = {
  pool: QuotaLevel.POOL,
  project: QuotaLevel.PROJECT,
  namespace: QuotaLevel.NAMESPACE,
  queue: QuotaLevel.QUEUE,
};
