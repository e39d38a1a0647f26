import { create } from "@bufbuild/protobuf";
import type { GangsOfCluster } from "../../core/admin/placed-gangs.ts";
import { type ClusterGangs, ClusterGangsSchema } from "../../gen/gangway/v1/cluster_service_pb.ts";
import { type CallAccess, namespacePlace } from "../rpc/call-access.ts";

/** How many names an answer holds at most. */
const NAMES_MAX = 100;

/**
 * Says how many gangs leave a cluster that becomes lost, forgotten or adopted, and how many stay. Names only those that
 * the caller may see.
 */
export function clusterGangs({ leaving, staying }: GangsOfCluster, access: Pick<CallAccess, "may">): ClusterGangs {
  const seen = leaving.filter(({ namespace }) => access.may("jobs.get", namespacePlace(namespace)));
  const names = seen.slice(0, NAMES_MAX).map(({ namespace, name }) => `${namespace}/${name}`);
  return create(ClusterGangsSchema, { leaving: leaving.length, staying, firstLeaving: names });
}
