import { replicaName } from "../../job/names.ts";
import { memberCount } from "../../job/roles.ts";
import { everyContainer, portOf, pythonEnv } from "../containers.ts";
import { exampleManifest } from "../example.ts";
import type { ClusterSpec, EnvVar, Kind, Replica, RoleState, Verdict } from "../kind.ts";
import { integerSchema, kindSpecSchema, METRICS } from "../kind-spec.ts";
import { allSucceeded, leaderVerdict } from "../verdicts.ts";
import { boundsErrors, elasticWorkers } from "./elastic.ts";
import { boundedRoleName } from "./role-name.ts";

const ROLES = [
  { name: "Master", min: 0, max: null },
  { name: "Worker", min: 0, max: null },
];

/** Kubeflow's PaddleJob. With masters: parameter-server mode. Without: collective mode, led by worker 0. */
export const paddleJob: Kind = {
  name: "PaddleJob",
  description:
    "Distributed PaddlePaddle: masters are parameter servers; without masters, workers run in collective mode. " +
    "Replicas meet at PADDLE_MASTER. Succeeds with the masters; without masters, when all workers have succeeded.",
  apiVersion: "kubeflow.org/v1",
  replicaSpecsField: "paddleReplicaSpecs",
  operatorName: "paddlejob-controller",
  defaultContainer: "paddle",
  containerRequired: true,
  defaultPort: { name: "master", number: 36543 },
  roles: ROLES,
  roleName: boundedRoleName(ROLES),
  defaults: { restartPolicy: "OnFailure", restartScope: "REPLICA", backoffLimit: null },
  kindSpecSchema: kindSpecSchema("PaddleJob", {
    elasticPolicy: {
      title: "elasticPolicy",
      type: "object",
      additionalProperties: false,
      description: "Bounds of the workers.",
      properties: {
        minReplicas: integerSchema("Fewest workers.", { minimum: 1 }),
        maxReplicas: integerSchema("Most workers.", { minimum: 1 }),
        maxRestarts: integerSchema("How often Paddle restarts the workers.", { minimum: 0 }),
        metrics: METRICS,
      },
    },
  }),
  validate: boundsErrors,
  example: exampleManifest({
    apiVersion: "kubeflow.org/v1",
    kind: "PaddleJob",
    replicaSpecsField: "paddleReplicaSpecs",
    container: "paddle",
    image: "registry.baidubce.com/paddlepaddle/paddle:2.4.0rc0-gpu-cuda11.2-cudnn8.1-trt8.0",
    replicas: { Worker: 2 },
  }),
  clusterSpec,
  objects: () => [],
  isMaster: (members, role, index) => role === leaderOf(members) && (role === "Master" || index === 0),
  elasticRoles: elasticWorkers,
  verdict,
};

function leaderOf(members: Readonly<Record<string, number>>): "Master" | "Worker" {
  return (members["Master"] ?? 0) > 0 ? "Master" : "Worker";
}

function verdict(states: readonly RoleState[]): Verdict {
  const leader = leaderOf(Object.fromEntries(states.map(({ role, members }) => [role, members])));
  return leaderVerdict(states, { leads: ({ role }) => role === leader, done: allSucceeded });
}

function clusterSpec(replica: Replica): ClusterSpec {
  const served = (replica.members["Master"] ?? 0) > 0;
  const mode = { name: replica.role === "Master" ? "PADDLE_SERVER_NUM" : "PADDLE_TRAINER_NUM", value: "1" };
  const env = [
    { name: "PADDLE_JOB_ID", value: replica.jobName },
    { name: "PADDLE_NNODES", value: String(memberCount(replica.members)) },
    ...meetingPoint(replica),
    ...(served ? [mode] : []),
  ];
  return { env: everyContainer(replica, env), defaultEnv: pythonEnv(replica), initContainers: [] };
}

/**
 * The address where the replicas meet: that of the first leader. The leader itself listens on the address of its pod,
 * because its DNS name may not resolve yet.
 */
function meetingPoint(replica: Replica): EnvVar[] {
  const leader = leaderOf(replica.members);
  const port = portOf(replica.spec, leader, paddleJob);
  if (replica.role !== leader || replica.index !== 0) {
    return [{ name: "PADDLE_MASTER", value: `${replicaName(replica.jobName, leader, 0)}:${port}` }];
  }
  return [
    { name: "POD_IP_DUMMY", valueFrom: { fieldRef: { fieldPath: "status.podIP" } } },
    { name: "PADDLE_MASTER", value: `$(POD_IP_DUMMY):${port}` },
  ];
}
