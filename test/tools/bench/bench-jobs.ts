import type { SentJob } from "../../../src/core/job/request/sent.ts";
import { podTemplate } from "./bench-cluster.ts";

/**
 * A gang of this many pods, without a limit of the time that it waits for room. It may run only on `clusters`, if any
 * are named.
 */
export function benchJob(of: {
  readonly namespace: string;
  readonly name: string;
  readonly replicas: number;
  readonly clusters?: readonly string[];
  /** How long its pods run on a simulated cluster. Omitted: until they are deleted. */
  readonly runs?: string;
}): SentJob {
  return {
    namespace: of.namespace,
    name: of.name,
    generateName: "",
    labels: {},
    annotations: {},
    spec: {
      kind: "Job",
      replicaSpecs: { Worker: { replicas: of.replicas, template: podTemplate(of.runs) } },
      runPolicy: { schedulingPolicy: { queue: "bench", scheduleTimeoutSeconds: 0 } },
      ...(of.clusters === undefined ? {} : { placement: { clusters: of.clusters } }),
    },
  };
}
