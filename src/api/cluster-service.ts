import type { MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { NodeCapacity } from "../core/plan/snapshot.ts";
import type { ClusterSchema, ClusterService, NodeSchema } from "../gen/gangway/v1/cluster_service_pb.ts";
import { changed, found } from "./change-outcome.ts";
import { toTimestamp } from "./convert-job.ts";
import { sumResources, toQuantities } from "./convert-quantity.ts";
import type { ServiceHandlers } from "./handler.ts";
import type { Admin, ClusterRecord } from "./ports.ts";

export type ClusterPorts = { readonly admin: Admin; readonly wakePlanner: () => void };

export function clusterService({ admin, wakePlanner }: ClusterPorts): ServiceHandlers<typeof ClusterService> {
  const setCordoned = async (name: string, cordoned: boolean) => {
    const record = changed(await admin.setCordoned(name, cordoned), named(name));
    wakePlanner();
    return { cluster: toProtoCluster(record) };
  };
  return {
    getCluster: async ({ name }) => ({ cluster: toProtoCluster(found(await admin.getCluster(name), named(name))) }),
    listClusters: async () => ({ clusters: (await admin.listClusters()).map(toProtoCluster) }),
    cordonCluster: ({ name }) => setCordoned(name, true),
    uncordonCluster: ({ name }) => setCordoned(name, false),
    getCapacity: async ({ name }) => {
      const record = found(await admin.getCluster(name), named(name));
      const nodes = record.capacity?.nodes.map(toProtoNode) ?? [];
      return { cluster: record.name, nodes, observeTime: toTimestamp(record.observedMs) };
    },
  };
}

function named(name: string) {
  return { type: "cluster", name };
}

function toProtoCluster(record: ClusterRecord): MessageInitShape<typeof ClusterSchema> {
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
  };
}

function toProtoNode(node: NodeCapacity): MessageInitShape<typeof NodeSchema> {
  return {
    name: node.name,
    labels: { ...node.labels },
    taints: node.taints.map(({ key, value, effect }) => `${key}=${value}:${effect}`),
    unschedulable: node.unschedulable,
    allocatable: toQuantities(node.allocatable),
    free: toQuantities(node.free),
  };
}
