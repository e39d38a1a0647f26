import type { MessageInitShape } from "@bufbuild/protobuf";
import { durationFromMs, timestampFromMs } from "@bufbuild/protobuf/wkt";
import { type ClusterCheck, type ClusterRecord, clusterState } from "../../core/admin/cluster.ts";
import { flavorNodes, flavorProblem } from "../../core/admin/flavor-nodes.ts";
import type { ClusterCapacity, ClusterFlavor } from "../../core/plan/model/snapshot.ts";
import type { Topology } from "../../core/plan/model/topology.ts";
import { exactMilli, isBytes, type Resources } from "../../core/pods/resources.ts";
import {
  type ClusterCheckSchema,
  type ClusterSchema,
  ClusterState,
  GangScheduler,
  type Topology as ProtoTopology,
  ClusterCheck_Severity as Severity,
} from "../../gen/gangway/v1/cluster_service_pb.ts";
import { toTimestamp } from "../rpc/timestamp.ts";

const GANG_SCHEDULER = {
  none: GangScheduler.NONE,
  volcano: GangScheduler.VOLCANO,
  "scheduler-plugins": GangScheduler.SCHEDULER_PLUGINS,
} as const satisfies Readonly<Record<ClusterRecord["gangScheduler"], GangScheduler>>;

const BINARY_UNITS = [
  ["Ti", 2n ** 40n],
  ["Gi", 2n ** 30n],
  ["Mi", 2n ** 20n],
  ["Ki", 2n ** 10n],
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
    topology: toProtoTopology(record.topology ?? []),
    gangScheduler: GANG_SCHEDULER[record.gangScheduler],
    uid: record.uid ?? "",
    state: ClusterState[clusterState(record)],
    unadoptedSince: toTimestamp(record.unadoptedMs ?? null),
    stateSince: toTimestamp(record.silence?.sinceMs ?? record.returningMs ?? null),
  };
}

function toProtoTopology(topology: Topology) {
  return { levels: topology.map(({ name, label }) => ({ name, label })) };
}

/** Converts the levels of a request. Undefined: the request names none. */
export function topologyFromProto(sent: ProtoTopology | undefined): Topology | undefined {
  return sent?.levels.map(({ name, label }) => ({ name, label }));
}

function toProtoFlavor(flavor: ClusterFlavor, capacity: ClusterCapacity | null) {
  const { name, resource, nodeLabels, topology } = flavor;
  const levels = topology === undefined ? {} : { topology: toProtoTopology(topology) };
  const settings = { name, resource, nodeLabels: { ...nodeLabels }, ...levels };
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
export function toQuantities(resources: Readonly<Record<string, number | bigint>>): Record<string, string> {
  return Object.fromEntries(Object.entries(resources).map(([name, milli]) => [name, toQuantity(name, milli)]));
}

/** The sums of amounts that are exact, or can be made so. */
function sumResources(all: readonly Resources[]): Readonly<Record<string, bigint>> {
  const sums: Record<string, bigint> = {};
  for (const resources of all) {
    for (const [name, milli] of Object.entries(resources)) sums[name] = (sums[name] ?? 0n) + exactMilli(milli);
  }
  return sums;
}

/** An amount in thousandths as a Kubernetes quantity. One below 0 is shown as 0. */
export function toQuantity(name: string, amount: number | bigint): string {
  if (amount <= 0) return "0";
  const milli = typeof amount === "bigint" ? amount : exactMilli(amount);
  const whole = milli / 1000n;
  if (milli % 1000n !== 0n) return isBytes(name) ? String(whole) : `${milli}m`;
  const unit = isBytes(name) ? BINARY_UNITS.find(([, size]) => whole % size === 0n) : undefined;
  return unit === undefined ? String(whole) : `${whole / unit[1]}${unit[0]}`;
}
