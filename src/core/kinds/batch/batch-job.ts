import type { JobSpec } from "../../job/spec.ts";
import { containerNames, podSpecOf } from "../containers.ts";
import type { ClusterSpec, EnvVar, Kind, Replica, RoleBounds } from "../kind.ts";
import type { KindRules } from "../kind-rules.ts";
import { kindSpecSchema } from "../kind-spec.ts";
import { boundedRoleName } from "../kubeflow/role-name.ts";
import { everyoneVerdict } from "../verdicts.ts";
import { BATCH_FIELDS } from "./batch-schema.ts";
import { BATCH_ROLE, type BatchSpec, batchSpecOf } from "./batch-spec.ts";
import { judgeBatch, mayStartIn, retryDelayMs } from "./judge-batch.ts";
import { judgeFailure } from "./judge-failure.ts";
import { readBatchJob } from "./read-batch-job.ts";
import { validateBatch } from "./validate-batch.ts";

const NAME = "Job.v1.batch";
const ROLES: readonly RoleBounds[] = [{ name: BATCH_ROLE, min: 1, max: null }];

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

const RULES: KindRules = {
  onFailure: (pod) => judgeFailure(batchOf(pod.spec), pod),
  judge: (gang) => judgeBatch(batchOf(gang.spec), gang),
  mayStart: (gang) => mayStartIn(batchOf(gang.spec), gang),
  retryDelayMs: ({ spec, ...failure }) => retryDelayMs(batchOf(spec), failure),
  partsOf: (spec) => batchOf(spec).completions,
};

/** Kubernetes' Job, whose pods Gangway makes itself. Source: the Job controller of Kubernetes 1.36. */
export const batchJob: Kind = {
  name: NAME,
  manifestKind: "Job",
  description:
    "Kubernetes' Job: pods that each do a part of the work; with completionMode Indexed they know their number by " +
    "JOB_COMPLETION_INDEX. Succeeds when its completions are reached, or by its success policy.",
  apiVersion: "batch/v1",
  replicaSpecsField: "template",
  readSpec: readBatchJob,
  operatorName: "gangway-batch-job",
  defaultContainer: null,
  containerRequired: false,
  defaultPort: null,
  roles: ROLES,
  roleName: boundedRoleName(ROLES),
  defaults: { restartPolicy: "Never", restartScope: "REPLICA", backoffLimit: null, cleanPodPolicy: "Running" },
  kindSpecSchema: kindSpecSchema("Job", BATCH_FIELDS),
  validate: validateBatch,
  example: {
    apiVersion: "batch/v1",
    kind: "Job",
    metadata: { name: "batch-job-example", namespace: "default" },
    spec: {
      completionMode: "Indexed",
      completions: 2,
      parallelism: 2,
      backoffLimit: 3,
      template: {
        spec: {
          restartPolicy: "Never",
          containers: [
            {
              name: "main",
              image: "busybox:1.36",
              command: ["sh", "-c", "echo part $JOB_COMPLETION_INDEX"],
              resources: { limits: { "nvidia.com/gpu": 1 } },
            },
          ],
        },
      },
    },
  },
  clusterSpec,
  objects: () => [],
  isMaster: () => false,
  verdict: everyoneVerdict,
  podName: (jobName, _role, index) => `${jobName}-${index}`,
  rules: RULES,
  elasticRoles: (spec) => [{ name: BATCH_ROLE, min: 1, max: fixedCompletions(spec) }],
};

function batchOf({ kindSpec, replicaSpecs }: JobSpec): BatchSpec {
  const { replicas: members = 0, restartPolicy } = replicaSpecs[BATCH_ROLE] ?? {};
  return batchSpecOf(kindSpec, { members, restartPolicy });
}

/** The most pods that could be of use. Null: more pods do more work. */
function fixedCompletions(spec: JobSpec): number | null {
  const { completions, isIndexed } = batchOf(spec);
  return isIndexed && spec.kindSpec["completions"] === undefined ? null : completions;
}

function clusterSpec(replica: Replica): ClusterSpec {
  const { jobName, jobUid, index } = replica;
  const { isIndexed } = batchOf(replica.spec);
  const labels = {
    [LABEL.jobName]: jobName,
    [LABEL.controllerUid]: jobUid,
    [LABEL.oldJobName]: jobName,
    [LABEL.oldControllerUid]: jobUid,
  };
  if (!isIndexed) return { env: {}, initContainers: [], labels };
  return {
    env: {},
    defaultEnv: Object.fromEntries(
      containerNames(podSpecOf(replica, replica.role)).map((name) => [name, [INDEX_VARIABLE]]),
    ),
    initContainers: [],
    labels: { ...labels, [LABEL.index]: String(index) },
    annotations: { [LABEL.index]: String(index), ...failureCounts(replica) },
    hostname: `${jobName}-${index}`,
  };
}

const INDEX_VARIABLE: EnvVar = {
  name: "JOB_COMPLETION_INDEX",
  valueFrom: { fieldRef: { fieldPath: `metadata.labels['${LABEL.index}']` } },
};

/** Where failures are counted by index, the pod knows how many there were. */
function failureCounts({ spec, members, attempt = 1, failures = 0 }: Replica): Readonly<Record<string, string>> {
  const { backoffLimitPerIndex, completions } = batchOf(spec);
  if (backoffLimitPerIndex === null) return {};
  // A member that does one part after the other has attempts at each.
  const ignored = (completions ?? 0) > (members[BATCH_ROLE] ?? 0) ? 0 : attempt - 1 - failures;
  return {
    [LABEL.failures]: String(failures),
    ...(ignored > 0 ? { [LABEL.ignoredFailures]: String(ignored) } : {}),
  };
}
