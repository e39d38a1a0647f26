import type { JobSpec } from "../../job/spec.ts";
import type { ClusterSpec, Kind, Replica, RoleBounds } from "../kind.ts";
import type { KindRules, Work } from "../kind-rules.ts";
import { kindSpecSchema } from "../kind-spec.ts";
import { boundedRoleName } from "../kubeflow/role-name.ts";
import { everyoneVerdict } from "../verdicts.ts";
import { batchIdentity, failureCounts } from "./batch-pods.ts";
import { BATCH_FIELDS } from "./batch-schema.ts";
import { BATCH_ROLE, type BatchSpec, batchSpecOf } from "./batch-spec.ts";
import { judgeBatch, mayStartIn, retryDelayMs } from "./judge-batch.ts";
import { judgeFailure } from "./judge-failure.ts";
import { readBatchJob } from "./read-batch-job.ts";
import { validateBatch } from "./validate-batch.ts";

const NAME = "Job.v1.batch";
const ROLES: readonly RoleBounds[] = [{ name: BATCH_ROLE, min: 1, max: null }];

const RULES: KindRules = {
  onFailure: (pod) => judgeFailure(batchOf(pod.spec), pod),
  judge: (gang) => judgeBatch(batchOf(gang.spec), gang),
  mayStart: (gang) => mayStartIn(batchOf(gang.spec), gang),
  retryDelayMs: ({ spec, ...failure }) => retryDelayMs(batchOf(spec), failure),
  workOf,
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
  podName: ({ name }, _role, part) => `${name}-${part}`,
  rules: RULES,
  elasticRoles: (spec) => [{ name: BATCH_ROLE, min: 1, max: fixedCompletions(spec) }],
};

/** Without completions, each member does one part. */
function workOf(spec: WorkedSpec): Work {
  const members = spec.replicaSpecs[BATCH_ROLE]?.replicas ?? 0;
  return { groups: 1, members, parts: batchOf(spec).completions ?? members };
}

type WorkedSpec = Pick<JobSpec, "kindSpec" | "replicaSpecs">;

function batchOf({ kindSpec, replicaSpecs }: WorkedSpec): BatchSpec {
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
  const pod = batchIdentity(replica, { jobName, jobUid, isIndexed, index });
  return isIndexed ? { ...pod, annotations: { ...pod.annotations, ...countsOf(replica) } } : pod;
}

/** Where failures are counted by index, the pod knows how many there were. */
function countsOf({ spec, members, attempt = 1, failures = 0 }: Replica): Readonly<Record<string, string>> {
  const { backoffLimitPerIndex, completions } = batchOf(spec);
  if (backoffLimitPerIndex === null) return {};
  // A member that does one part after the other has attempts at each.
  const ignored = (completions ?? 0) > (members[BATCH_ROLE] ?? 0) ? 0 : attempt - 1 - failures;
  return failureCounts(failures, ignored);
}
