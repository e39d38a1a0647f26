import type { Cluster } from "../../gen/gangway/v1/cluster_service_pb.ts";

/** The reasons why a cluster takes no new gangs, in words. */
export function clusterProblems({ reachable, problem, cordoned, retired }: Cluster): readonly string[] {
  const words = [
    reachable ? "" : "unreachable",
    problem === "" ? "" : "unusable",
    cordoned ? "cordoned" : "",
    retired ? "retired" : "",
  ];
  return words.filter((word) => word !== "");
}
