import type { ClusterRecord } from "../../core/admin/cluster.ts";
import type { ClusterService } from "../../gen/gangway/v1/cluster_service_pb.ts";
import { toTimestamp } from "../job/convert-job.ts";
import type { Admin, ClusterAdmin } from "../ports.ts";
import { changedRecord, existingRecord } from "../rpc/admin-outcome.ts";
import type { ServiceHandlers } from "../rpc/handler.ts";
import { clusterRef, toProtoCluster, toProtoNode } from "./convert-cluster.ts";
import { keyHandlers } from "./credential-keys.ts";
import { registration } from "./register-cluster.ts";

type ClusterPorts = {
  readonly admin: Admin;
  readonly clusters: ClusterAdmin;
  /** Gives the counters the new limits and wakes the planner. A cluster's new flavors are new pools. */
  readonly limitsChanged: () => Promise<void>;
  readonly wakePlanner: () => void;
};

export function clusterService(ports: ClusterPorts): ServiceHandlers<typeof ClusterService> {
  const { admin, wakePlanner } = ports;
  const shown = (record: ClusterRecord) => ({
    ...toProtoCluster(record),
    problem: ports.clusters.problemOf?.(record.name) ?? "",
  });
  const setCordoned = async (name: string, cordoned: boolean) => {
    const record = changedRecord(await admin.setCordoned(name, cordoned), clusterRef(name));
    wakePlanner();
    return { cluster: shown(record) };
  };
  return {
    ...registration(ports),
    ...keyHandlers(ports.clusters),
    getCluster: async ({ name }) => ({
      cluster: shown(existingRecord(await admin.getCluster(name), clusterRef(name))),
    }),
    listClusters: async (_request, { access }) => {
      const isSeen = ({ name }: ClusterRecord) => access.may("clusters.get", { kind: "cluster", name });
      return { clusters: (await admin.listClusters()).filter(isSeen).map(shown) };
    },
    cordonCluster: ({ name }) => setCordoned(name, true),
    uncordonCluster: ({ name }) => setCordoned(name, false),
    getCapacity: async ({ name }) => {
      const record = existingRecord(await admin.getCluster(name), clusterRef(name));
      const nodes = record.capacity?.nodes.map(toProtoNode) ?? [];
      return { cluster: record.name, nodes, observeTime: toTimestamp(record.observedMs) };
    },
  };
}
