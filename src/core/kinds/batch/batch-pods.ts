/** How the pods of a batch Job look. Source: the Job controller of Kubernetes. */
import { containerNames, podSpecOf } from "../containers.ts";
import type { ClusterSpec, EnvVar, Replica } from "../kind.ts";

/** Labels and annotations of the Job controller. */
const LABEL = {
  jobName: "batch.kubernetes.io/job-name",
  controllerUid: "batch.kubernetes.io/controller-uid",
  index: "batch.kubernetes.io/job-completion-index",
  failures: "batch.kubernetes.io/job-index-failure-count",
  ignoredFailures: "batch.kubernetes.io/job-index-ignored-failure-count",
  oldJobName: "job-name",
  oldControllerUid: "controller-uid",
} as const;

/** A batch Job, which may be one of several of a JobSet. */
type PodsJob = {
  readonly jobName: string;
  readonly jobUid: string;
  readonly isIndexed: boolean;
  /** The index of the pod in it. */
  readonly index: number;
};

/** Names, labels and variables of a pod. */
export function batchIdentity(replica: Replica, { jobName, jobUid, isIndexed, index }: PodsJob): ClusterSpec {
  const labels = {
    [LABEL.jobName]: jobName,
    [LABEL.controllerUid]: jobUid,
    [LABEL.oldJobName]: jobName,
    [LABEL.oldControllerUid]: jobUid,
  };
  if (!isIndexed) return { env: {}, initContainers: [], labels };
  const containers = containerNames(podSpecOf(replica, replica.role));
  return {
    env: {},
    defaultEnv: Object.fromEntries(containers.map((name) => [name, [INDEX_VARIABLE]])),
    initContainers: [],
    labels: { ...labels, [LABEL.index]: String(index) },
    annotations: { [LABEL.index]: String(index) },
    hostname: `${jobName}-${index}`,
  };
}

const INDEX_VARIABLE: EnvVar = {
  name: "JOB_COMPLETION_INDEX",
  valueFrom: { fieldRef: { fieldPath: `metadata.labels['${LABEL.index}']` } },
};

/** Where failures are counted by index, the pod knows how many there were. */
export function failureCounts(failures: number, ignored: number): Readonly<Record<string, string>> {
  return {
    [LABEL.failures]: String(failures),
    ...(ignored > 0 ? { [LABEL.ignoredFailures]: String(ignored) } : {}),
  };
}
