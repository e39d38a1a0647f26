import type { ClusterService } from "../gen/gangway/v1/cluster_service_pb.ts";
import { changed, found } from "./change-outcome.ts";
import { named, toProtoCluster, toProtoNode } from "./convert-cluster.ts";
import { toTimestamp } from "./convert-job.ts";
import type { ServiceHandlers } from "./handler.ts";

import type { Admin, ClusterAdmin } from "./ports.ts";
import { registration } from "./register-cluster.ts";

export type ClusterPorts = {
  readonly admin: Admin;
  readonly clusters: ClusterAdmin;
  readonly wakePlanner: () => void;
};

export function clusterService(ports: ClusterPorts): ServiceHandlers<typeof ClusterService> {
  const { admin, wakePlanner } = ports;
  const setCordoned = async (name: string, cordoned: boolean) => {
    const record = changed(await admin.setCordoned(name, cordoned), named(name));
    wakePlanner();
    return { cluster: toProtoCluster(record) };
  };
  return {
    ...registration(ports),
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
