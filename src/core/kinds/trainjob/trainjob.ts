import { jobSet } from "../jobset/jobset.ts";
import { JOBSET_FIELDS } from "../jobset/jobset-schema.ts";
import type { Kind } from "../kind.ts";
import { integerSchema, kindSpecSchema } from "../kind-spec.ts";
import { POLICIES, POLICY_FIELD, policyEnv } from "./ml-policies.ts";
import { MPI_FIELD, mpiObjects, mpiVolumes } from "./mpi-policy.ts";
import { readTrainJob } from "./read-trainjob.ts";
import { NODE, TRAINER_API_VERSION } from "./training-runtime.ts";

/** A TrainJob, which is the JobSet that it makes of its runtime. Source: Kubeflow Trainer 2.3. */
export const trainJob: Kind = {
  ...jobSet,
  name: "TrainJob",
  description:
    "Kubeflow Trainer's TrainJob: a program, and a runtime that says how its nodes run it, for torch, DeepSpeed, " +
    "JAX, XGBoost and others. Succeeds when the nodes do, or the launcher if there is one.",
  apiVersion: TRAINER_API_VERSION,
  replicaSpecsField: "trainer",
  readSpec: readTrainJob,
  operatorName: "gangway-trainjob",
  defaultContainer: NODE,
  kindSpecSchema: {
    ...kindSpecSchema("TrainJob", {
      ...JOBSET_FIELDS,
      runtimeRef: {
        title: "runtimeRef",
        type: "object",
        additionalProperties: false,
        properties: { kind: { type: "string" }, name: { type: "string" } },
        description: "The runtime that the job was made with. A later change of it does not reach the job.",
      },
      [POLICY_FIELD]: {
        title: POLICY_FIELD,
        type: "object",
        additionalProperties: false,
        description: "What the policy of its runtime tells the nodes of the trainer.",
        properties: {
          name: { type: "string", enum: [...POLICIES] },
          group: { type: "string" },
          nodes: integerSchema("The number of nodes.", { minimum: 1 }),
          processes: integerSchema("Processes of each node. 0: one for each GPU.", { minimum: 0 }),
          ownEndpoint: { type: "boolean", description: "True: its command names the first node." },
        },
      },
      [MPI_FIELD]: {
        title: MPI_FIELD,
        type: "object",
        additionalProperties: false,
        description: "What the policy for MPI of its runtime adds to the pods.",
        properties: {
          slots: integerSchema("Processes of each node.", { minimum: 1 }),
          sshAuthMountPath: { type: "string" },
          nodes: { type: "array", items: { type: "string" }, description: "The groups in the hosts file." },
        },
      },
    }),
    required: ["replicatedJobs"],
  },
  example: {
    apiVersion: TRAINER_API_VERSION,
    kind: "TrainJob",
    metadata: { name: "trainjob-example", namespace: "default" },
    spec: {
      runtimeRef: { name: "torch-distributed" },
      trainer: {
        numNodes: 2,
        command: ["torchrun", "train.py"],
        resourcesPerNode: { limits: { "nvidia.com/gpu": 1 } },
      },
    },
  },
  clusterSpec: (replica) => {
    const pod = jobSet.clusterSpec(replica);
    const { volumes = [], ...mpi } = mpiVolumes(replica);
    return { ...pod, ...mpi, env: policyEnv(replica), volumes: [...(pod.volumes ?? []), ...volumes] };
  },
  objects: (gang) => [...jobSet.objects(gang), ...mpiObjects(gang)],
};
