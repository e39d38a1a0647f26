import type { SentJob } from "../../src/core/job/sent.ts";
import { podTemplate } from "./bench-cluster.ts";

/** A gang of so many pods, which waits for room as long as it takes; `clusters` are all that it may go to, if any are named. */
export function benchJob(of: {
  readonly namespace: string;
  readonly name: string;
  readonly replicas: number;
  readonly clusters?: readonly string[];
}): SentJob {
  return {
    namespace: of.namespace,
    name: of.name,
    generateName: "",
    labels: {},
    annotations: {},
    spec: {
      kind: "Job",
      replicaSpecs: { Worker: { replicas: of.replicas, template: podTemplate() } },
      runPolicy: { schedulingPolicy: { queue: "bench", scheduleTimeoutSeconds: 0 } },
      ...(of.clusters === undefined ? {} : { placement: { clusters: of.clusters } }),
    },
  };
}
