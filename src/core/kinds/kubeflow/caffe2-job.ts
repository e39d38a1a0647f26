import { stringAt } from "../../../runtime/json.ts";
import { replicaName } from "../../job/names.ts";
import { everyContainer, portOf } from "../containers.ts";
import { exampleManifest } from "../example.ts";
import type { ClusterSpec, Kind, Replica } from "../kind.ts";
import { kindSpecSchema } from "../kind-spec.ts";
import { everyoneVerdict } from "../verdicts.ts";
import { boundedRoleName } from "./role-name.ts";

const ROLES = [{ name: "Worker", min: 1, max: null }];

/** The Caffe2Job of the Caffe2 operator. Its shards share one run id. */
export const caffe2Job: Kind = {
  name: "Caffe2Job",
  description:
    "Distributed Caffe2: workers find each other by CAFFE2_CONFIG and know their shard by SHARD_ID. " +
    "Succeeds when all workers have succeeded.",
  apiVersion: "kubeflow.org/v1",
  replicaSpecsField: "caffe2ReplicaSpecs",
  operatorName: "caffe2job-controller",
  defaultContainer: "caffe2",
  containerRequired: true,
  defaultPort: { name: "caffe2job-port", number: 2222 },
  roles: ROLES,
  roleName: boundedRoleName(ROLES),
  defaults: { restartPolicy: "Never", restartScope: "REPLICA", backoffLimit: null },
  kindSpecSchema: kindSpecSchema("Caffe2Job", {
    runtimeId: {
      type: "string",
      minLength: 1,
      description: "The RUN_ID that the shards share. Omitted: made of job name and admission.",
    },
    backend: {
      type: "string",
      enum: ["none", "redis", "nfs"],
      description: "The rendezvous backend of the program. Gangway does not connect to it.",
    },
  }),
  validate: () => [],
  example: exampleManifest({
    apiVersion: "kubeflow.org/v1",
    kind: "Caffe2Job",
    replicaSpecsField: "caffe2ReplicaSpecs",
    container: "caffe2",
    image: "kubeflow/caffe2:py2-cuda9.0-cudnn7-ubuntu16.04",
    replicas: { Worker: 2 },
  }),
  clusterSpec,
  objects: () => [],
  isMaster: (_members, _role, index) => index === 0,
  verdict: everyoneVerdict,
};

function clusterSpec(replica: Replica): ClusterSpec {
  const workers = replica.members["Worker"] ?? 0;
  const port = portOf(replica.spec, "Worker", caffe2Job);
  const worker = Array.from(
    { length: workers },
    (_, index) => `${replicaName(replica.jobName, "Worker", index)}:${port}`,
  );
  const config = { cluster: { worker }, task: { type: "worker", index: replica.index } };
  const runId = stringAt(replica.spec.kindSpec, "runtimeId") ?? `${replica.jobName}-${replica.admission}`;
  const env = [
    { name: "SHARD_ID", value: String(replica.index) },
    { name: "NUM_SHARDS", value: String(workers) },
    { name: "RUN_ID", value: runId },
    { name: "CAFFE2_CONFIG", value: JSON.stringify(config) },
  ];
  return { env: everyContainer(replica, env), initContainers: [] };
}
