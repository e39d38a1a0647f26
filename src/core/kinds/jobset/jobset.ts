import { retryDelayMs } from "../batch/judge-batch.ts";
import { failureByRule, judgeFailure } from "../batch/judge-failure.ts";
import type { Kind } from "../kind.ts";
import type { FailedPod, FailureAction, KindRules } from "../kind-rules.ts";
import { kindSpecSchema } from "../kind-spec.ts";
import { everyoneVerdict } from "../verdicts.ts";
import { groupOfPart } from "../work.ts";
import { childPodName } from "./child-jobs.ts";
import { jobSetClaims, jobSetPod, jobSetService } from "./jobset-pods.ts";
import { JOBSET_FIELDS } from "./jobset-schema.ts";
import { childGroupOf, jobSetOf, workOfGroup } from "./jobset-spec.ts";
import { judgeJobSet } from "./judge-jobset.ts";
import { readJobSet } from "./read-jobset.ts";
import { mayStartInSet, nextDeadlineMs, startsInOrder } from "./start-order.ts";
import { validateJobSet } from "./validate-jobset.ts";
import { losesVolumes } from "./volume-claims.ts";

const RULES: KindRules = {
  onFailure,
  judge: (gang) => judgeJobSet(jobSetOf(gang.spec), gang),
  mayStart: (gang) => mayStartInSet(jobSetOf(gang.spec), gang),
  retryDelayMs: ({ spec, role, failed, failedInGroup }) => {
    const batch = childGroupOf(spec, role)?.batch;
    return batch === undefined ? 0 : retryDelayMs(batch, { inRow: failedInGroup, failed });
  },
  workOf: (spec, role) => workOfGroup(childGroupOf(spec, role)),
  startsInOrder: (spec) => startsInOrder(jobSetOf(spec)) || losesVolumes(spec),
  worksAnew: losesVolumes,
  recheckAtMs: (gang) => nextDeadlineMs(jobSetOf(gang.spec), gang),
};

/** A JobSet, whose pods Gangway makes itself. Source: JobSet 0.13. */
export const jobSet: Kind = {
  name: "JobSet",
  description:
    "JobSet: groups of Kubernetes' Jobs that start, restart and end together. Succeeds when the Jobs of its success " +
    "policy complete.",
  apiVersion: "jobset.x-k8s.io/v1alpha2",
  replicaSpecsField: "replicatedJobs",
  readSpec: readJobSet,
  operatorName: "gangway-jobset",
  defaultContainer: null,
  containerRequired: false,
  defaultPort: null,
  roles: null,
  roleName: (role) => role,
  defaults: { restartPolicy: "OnFailure", restartScope: "REPLICA", backoffLimit: null, cleanPodPolicy: "Running" },
  kindSpecSchema: { ...kindSpecSchema("JobSet", JOBSET_FIELDS), required: ["replicatedJobs"] },
  validate: validateJobSet,
  example: {
    apiVersion: "jobset.x-k8s.io/v1alpha2",
    kind: "JobSet",
    metadata: { name: "jobset-example", namespace: "default" },
    spec: {
      failurePolicy: { maxRestarts: 3 },
      replicatedJobs: [
        {
          name: "workers",
          replicas: 1,
          template: {
            spec: {
              parallelism: 2,
              completions: 2,
              backoffLimit: 0,
              template: {
                spec: {
                  restartPolicy: "Never",
                  containers: [
                    {
                      name: "main",
                      image: "busybox:1.36",
                      command: ["sh", "-c", "echo rank $JOB_COMPLETION_INDEX"],
                      resources: { limits: { "nvidia.com/gpu": 1 } },
                    },
                  ],
                },
              },
            },
          },
        },
      ],
    },
  },
  clusterSpec: jobSetPod,
  objects: jobSetClaims,
  service: jobSetService,
  isMaster: () => false,
  verdict: everyoneVerdict,
  podName: ({ name, spec }, role, part) => {
    const group = childGroupOf({ ...spec, replicaSpecs: {} }, role);
    const job = group === undefined ? 0 : groupOfPart(group, part);
    return childPodName(name, { group: role, job, pod: part - job * (group?.parts ?? 0) });
  },
  rules: RULES,
};

/**
 * A pod that the platform ended starts again alone, except in a child job that may not fail at all: such child jobs
 * cannot lose a pod, so the whole JobSet starts again.
 */
function onFailure(pod: FailedPod): FailureAction {
  const group = childGroupOf(pod.spec, pod.role);
  if (group === undefined) return { kind: "endPart" };
  const { batch } = group;
  const mayNotFail = pod.lost && batch.backoffLimit === 0 && failureByRule(batch, pod) === null;
  return mayNotFail ? { kind: "restartGang" } : judgeFailure(batch, pod);
}
