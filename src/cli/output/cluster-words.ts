import { type Cluster, ClusterState } from "../../gen/gangway/v1/cluster_service_pb.ts";

/** The reasons why a cluster takes no new gangs, in words. */
export function clusterProblems(cluster: Cluster): readonly string[] {
  const { reachable, state, problem, cordoned, retired, unadoptedSince } = cluster;
  const isUnusable = state === ClusterState.UNUSABLE || problem !== "";
  const silent = state === ClusterState.LOST ? "lost" : "unreachable";
  const words = [
    reachable || isUnusable ? "" : silent,
    isUnusable ? "unusable" : "",
    state === ClusterState.RETURNING && unadoptedSince === undefined ? "returning" : "",
    unadoptedSince === undefined ? "" : "unadopted",
    cordoned ? "cordoned" : "",
    retired ? "retired" : "",
  ];
  return words.filter((word) => word !== "");
}
