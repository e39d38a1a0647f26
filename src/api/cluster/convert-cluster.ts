import type { MessageInitShape } from "@bufbuild/protobuf";
import { durationFromMs, timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { ClusterCheck, ClusterRecord } from "../../core/admin/cluster.ts";
import { flavorNodes, flavorProblem } from "../../core/admin/flavor-nodes.ts";
import type { ClusterCapacity, ClusterFlavor, NodeCapacity } from "../../core/plan/snapshot.ts";
import { addResources, isBytes, type Resources } from "../../core/pods/resources.ts";
import {
  type ClusterCheckSchema,
  type ClusterSchema,
  GangScheduler,
  type NodeSchema,
  ClusterCheck_Severity as Severity,
} from "../../gen/gangway/v1/cluster_service_pb.ts";
import { toTimestamp } from "../job/convert-job.ts";

const GANG_SCHEDULER = {
  none: GangScheduler.NONE,
  volcano: GangScheduler.VOLCANO,
  "scheduler-plugins": GangScheduler.SCHEDULER_PLUGINS,
} as const satisfies Readonly<Record<ClusterRecord["gangScheduler"], GangScheduler>>;

const BINARY_UNITS = [
  ["Ti", 2 ** 40],
  ["Gi", 2 ** 30],
  ["Mi", 2 ** 20],
  ["Ki", 2 ** 10],
] as const;

/** Converts the gang scheduler of a request. Undefined: the request names none. */
export function gangSchedulerFromProto(sent: GangScheduler | undefined): ClusterRecord["gangScheduler"] | undefined {
  const names = Object.keys(GANG_SCHEDULER) as (keyof typeof GANG_SCHEDULER)[];
  return names.find((name) => GANG_SCHEDULER[name] === sent);
}

/** Names a cluster in errors. */
export function clusterRef(name: string) {
  return { type: "cluster", name };
}

export function toProtoCluster(record: ClusterRecord): MessageInitShape<typeof ClusterSchema> {
  const nodes = record.capacity?.nodes ?? [];
  const usable = nodes.filter((node) => !node.unschedulable);
  return {
    name: record.name,
    labels: { ...record.labels },
    flavors: record.flavors.map((flavor) => toProtoFlavor(flavor, record.capacity)),
    cordoned: record.cordoned,
    reachable: record.reachable,
    simulated: record.simulated,
    retired: record.retired ?? false,
    resourceVersion: String(record.version),
    createTime: timestampFromMs(record.createTimeMs),
    observeTime: toTimestamp(record.observedMs),
    allocatable: toQuantities(sumResources(usable.map((node) => node.allocatable))),
    free: toQuantities(sumResources(usable.map((node) => node.free))),
    nodes: nodes.length,
    gangScheduler: GANG_SCHEDULER[record.gangScheduler],
    uid: record.uid ?? "",
  };
}

function toProtoFlavor(flavor: ClusterFlavor, capacity: ClusterCapacity | null) {
  const { name, resource, nodeLabels } = flavor;
  const settings = { name, resource, nodeLabels: { ...nodeLabels } };
  if (capacity === null) return settings;
  const { nodes, allocatable, free } = flavorNodes(flavor, capacity.nodes);
  return {
    ...settings,
    nodes,
    allocatable: toQuantity(resource, allocatable),
    free: toQuantity(resource, free),
    problem: flavorProblem(flavor, capacity.nodes) ?? "",
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

/**
 * Converts amounts in thousandths to Kubernetes quantities: 1500 of cpu is `1500m`, memory is shown as `64Gi`. Negative
 * amounts are shown as 0.
 */
function toQuantities(resources: Resources): Record<string, string> {
  return Object.fromEntries(
    Object.entries(resources).map(([name, milli]) => [name, toQuantity(name, Math.max(0, milli))]),
  );
}

function sumResources(all: readonly Resources[]): Resources {
  return all.reduce(addResources, {});
}

/** An amount in thousandths as a Kubernetes quantity. */
export function toQuantity(name: string, milli: number): string {
  if (milli % 1000 !== 0) return isBytes(name) ? String(Math.floor(milli / 1000)) : `${milli}m`;
  const whole = milli / 1000;
  const unit = isBytes(name) && whole > 0 ? BINARY_UNITS.find(([, size]) => whole % size === 0) : undefined;
  return unit === undefined ? String(whole) : `${whole / unit[1]}${unit[0]}`;
}
