import { replicaName } from "../../job/names.ts";
import { memberCount } from "../../job/roles.ts";
import { everyContainer, portOf, pythonEnv } from "../containers.ts";
import { exampleManifest } from "../example.ts";
import type { ClusterSpec, EnvVar, Kind, Replica } from "../kind.ts";
import { kindSpecSchema } from "../kind-spec.ts";
import { allSucceeded, leaderVerdict } from "../verdicts.ts";
import { boundedRoleName } from "./role-name.ts";

const ROLES = [
  { name: "Master", min: 1, max: 1 },
  { name: "Worker", min: 0, max: null },
];

/** Kubeflow's XGBoostJob, for the rabit tracker of XGBoost and for LightGBM. The master leads. */
export const xgboostJob: Kind = {
  name: "XGBoostJob",
  description:
    "Distributed XGBoost or LightGBM: a master and workers find each other by MASTER_ADDR and WORKER_ADDRS. " +
    "Succeeds with the master.",
  apiVersion: "kubeflow.org/v1",
  replicaSpecsField: "xgbReplicaSpecs",
  operatorName: "xgboostjob-controller",
  defaultContainer: "xgboost",
  // Older manifests name the container xgboostjob. Then the first container counts.
  containerRequired: false,
  defaultPort: { name: "xgboostjob-port", number: 9999 },
  roles: ROLES,
  roleName: boundedRoleName(ROLES),
  defaults: { restartPolicy: "Never", restartScope: "REPLICA", backoffLimit: null },
  kindSpecSchema: kindSpecSchema("XGBoostJob"),
  validate: () => [],
  example: exampleManifest({
    apiVersion: "kubeflow.org/v1",
    kind: "XGBoostJob",
    replicaSpecsField: "xgbReplicaSpecs",
    container: "xgboost",
    image: "docker.io/kubeflow/xgboost-dist-iris:latest",
    replicas: { Master: 1, Worker: 2 },
  }),
  clusterSpec,
  objects: () => [],
  isMaster: (_members, role) => role === "Master",
  verdict: (states) => leaderVerdict(states, { leads: ({ role }) => role === "Master", done: allSucceeded }),
};

function clusterSpec(replica: Replica): ClusterSpec {
  const masters = replica.members["Master"] ?? 0;
  const env = [
    { name: "MASTER_PORT", value: String(portOf(replica.spec, "Master", xgboostJob)) },
    { name: "MASTER_ADDR", value: replicaName(replica.jobName, "Master", 0) },
    { name: "WORLD_SIZE", value: String(memberCount(replica.members)) },
    { name: "RANK", value: String(replica.index + (replica.role === "Worker" ? masters : 0)) },
    ...workersEnv(replica),
  ];
  return { env: everyContainer(replica, env), defaultEnv: pythonEnv(replica), initContainers: [] };
}

/** LightGBM makes its list of machines from these. None if the master is alone. */
function workersEnv(replica: Replica): EnvVar[] {
  const workers = replica.members["Worker"] ?? 0;
  if (workers === 0) return [];
  const names = Array.from({ length: workers }, (_, index) => replicaName(replica.jobName, "Worker", index));
  return [
    { name: "WORKER_PORT", value: String(portOf(replica.spec, "Worker", xgboostJob)) },
    { name: "WORKER_ADDRS", value: names.join(",") },
  ];
}
