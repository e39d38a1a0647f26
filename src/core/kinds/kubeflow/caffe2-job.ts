/** Caffe2 as its operator ran it: for users who keep jobs of a framework that no longer changes. */
import { isJsonObject, numberAt, objectAt, stringAt } from "../../../runtime/json.ts";
import { replicaName } from "../../job/names.ts";
import type { FieldError, SentSpec } from "../../job/request/sent.ts";
import { everyContainer, portOf } from "../containers.ts";
import { exampleManifest } from "../example.ts";
import type { ClusterSpec, EnvVar, Kind, Replica } from "../kind.ts";
import { integerSchema, kindSpecSchema } from "../kind-spec.ts";
import { everyoneVerdict } from "../verdicts.ts";
import { boundedRoleName } from "./role-name.ts";

const ROLES = [{ name: "Worker", min: 1, max: null }];

const BACKENDS = ["none", "redis", "nfs"];

/**
 * The Caffe2Job of the Caffe2 operator. Its shards share one run id. Manifests in the operator's own form,
 * `kubeflow.org/v1alpha1`, are read too. Source: the operator's `Caffe2JobSpec` and `createNewPod`.
 */
export const caffe2Job: Kind = {
  name: "Caffe2Job",
  description:
    "Distributed Caffe2: workers find each other by CAFFE2_CONFIG and know their shard by SHARD_ID. " +
    "Succeeds when all workers have succeeded.",
  apiVersion: "kubeflow.org/v1",
  replicaSpecsField: "caffe2ReplicaSpecs",
  olderForm: {
    apiVersion: "kubeflow.org/v1alpha1",
    replicaSpecField: "replicaSpecs",
    role: "Worker",
    // The operator read this member in any case.
    spellings: { runtimeID: "runtimeId", RuntimeID: "runtimeId", runtimeid: "runtimeId", runtime_id: "runtimeId" },
    defaults: { backendSpecs: {} },
  },
  operatorName: "caffe2job-controller",
  defaultContainer: "caffe2",
  containerRequired: false,
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
      enum: BACKENDS,
      description: "The rendezvous backend of the program. Gangway does not connect to it.",
    },
    backendSpecs: {
      type: "object",
      additionalProperties: false,
      description: "The backend as the operator's manifests describe it. Pods get REDIS_HOST, REDIS_PORT and NFS_PATH.",
      properties: {
        backendType: { type: "string", enum: BACKENDS, description: "The same as backend." },
        nfsPath: { type: "string", description: "The shared folder, for nfs." },
        redisHost: { type: "string", description: "The host of the Redis server, for redis." },
        redisPort: integerSchema("The port of the Redis server.", { minimum: 0, maximum: 65_535 }),
      },
    },
    terminationPolicy: {
      type: "object",
      description: "The chief of the operator's manifests.",
      "x-ignored": "the job succeeds when all workers have succeeded, as with the operator",
    },
  }),
  validate: () => [],
  warn: backendWarnings,
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
    ...backendEnv(replica.spec.kindSpec["backendSpecs"]),
  ];
  return { env: everyContainer(replica, env), initContainers: [] };
}

/** What the operator tells of the backend: empty texts and port 0 for what its manifest does not say. */
function backendEnv(specs: unknown): readonly EnvVar[] {
  if (!isJsonObject(specs)) return [];
  return [
    { name: "REDIS_HOST", value: stringAt(specs, "redisHost") ?? "" },
    { name: "REDIS_PORT", value: String(numberAt(specs, "redisPort") ?? 0) },
    { name: "NFS_PATH", value: stringAt(specs, "nfsPath") ?? "" },
  ];
}

/** Backends with which the shards would not find each other. The operator accepts them, so they are no errors. */
function backendWarnings({ kindSpec = {}, replicaSpecs }: SentSpec): readonly FieldError[] {
  const specs = objectAt(kindSpec, "backendSpecs");
  const type = stringAt(specs, "backendType");
  const workers = Object.values(replicaSpecs).reduce((sum, { replicas = 1 }) => sum + replicas, 0);
  const at = (member: string) => `spec.kindSpec.backendSpecs.${member}`;
  if (type === "none" && workers > 1) {
    return [{ path: at("backendType"), message: `is none, so the ${workers} shards cannot find each other` }];
  }
  if (type === "redis" && !stringAt(specs, "redisHost")) {
    return [{ path: at("redisHost"), message: "is empty, so the shards get no Redis server" }];
  }
  if (type === "nfs" && !stringAt(specs, "nfsPath")) {
    return [{ path: at("nfsPath"), message: "is empty, so the shards get no shared folder" }];
  }
  return [];
}
