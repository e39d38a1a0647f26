import type { MessageInitShape } from "@bufbuild/protobuf";
import { durationFromMs, timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { NodeCapacity } from "../core/plan/snapshot.ts";
import {
  type ClusterCheckSchema,
  type ClusterSchema,
  GangScheduler,
  type NodeSchema,
  ClusterCheck_Severity as Severity,
} from "../gen/gangway/v1/cluster_service_pb.ts";
import { toTimestamp } from "./convert-job.ts";
import { sumResources, toQuantities } from "./convert-quantity.ts";
import type { ClusterCheck, ClusterRecord } from "./ports.ts";

const GANG_SCHEDULER = {
  none: GangScheduler.NONE,
  volcano: GangScheduler.VOLCANO,
  "scheduler-plugins": GangScheduler.SCHEDULER_PLUGINS,
} as const satisfies Readonly<Record<ClusterRecord["gangScheduler"], GangScheduler>>;

/** The gang scheduler that a client named; undefined where it named none. */
export function gangSchedulerFromProto(sent: GangScheduler | undefined): ClusterRecord["gangScheduler"] | undefined {
  const names = Object.keys(GANG_SCHEDULER) as (keyof typeof GANG_SCHEDULER)[];
  return names.find((name) => GANG_SCHEDULER[name] === sent);
}

/** How errors name a cluster. */
export function named(name: string) {
  return { type: "cluster", name };
}

export function toProtoCluster(record: ClusterRecord): MessageInitShape<typeof ClusterSchema> {
  const nodes = record.capacity?.nodes ?? [];
  const usable = nodes.filter((node) => !node.unschedulable);
  return {
    name: record.name,
    labels: { ...record.labels },
    flavors: record.flavors.map(({ name, resource, nodeLabels }) => ({
      name,
      resource,
      nodeLabels: { ...nodeLabels },
    })),
    cordoned: record.cordoned,
    reachable: record.reachable,
    simulated: record.simulated,
    resourceVersion: String(record.version),
    createTime: timestampFromMs(record.createTimeMs),
    observeTime: toTimestamp(record.observedMs),
    allocatable: toQuantities(sumResources(usable.map((node) => node.allocatable))),
    free: toQuantities(sumResources(usable.map((node) => node.free))),
    nodes: nodes.length,
    gangScheduler: GANG_SCHEDULER[record.gangScheduler],
  };
}

export function toProtoNode(node: NodeCapacity): MessageInitShape<typeof NodeSchema> {
  return {
    name: node.name,
    labels: { ...node.labels },
    taints: node.taints.map(({ key, value, effect }) => `${key}=${value}:${effect}`),
    unschedulable: node.unschedulable,
    allocatable: toQuantities(node.allocatable),
    free: toQuantities(node.free),
  };
}

export function toProtoCheck(check: ClusterCheck): MessageInitShape<typeof ClusterCheckSchema> {
  const severity = { ERROR: Severity.ERROR, WARNING: Severity.WARNING };
  return {
    kubernetesVersion: check.kubernetesVersion,
    ...(check.clockSkewMs === null ? {} : { clockSkew: durationFromMs(check.clockSkewMs) }),
    findings: check.findings.map((finding) => ({ ...finding, severity: severity[finding.severity] })),
  };
}
