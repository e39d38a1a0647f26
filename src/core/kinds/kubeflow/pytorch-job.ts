import type { JsonObject } from "../../../runtime/json.ts";
import { replicaName } from "../../job/names.ts";
import { memberCount } from "../../job/roles.ts";
import { everyContainer, portOf, pythonEnv } from "../containers.ts";
import { exampleManifest } from "../example.ts";
import type { ClusterSpec, EnvVar, Kind, Replica, RoleState, Verdict } from "../kind.ts";
import { kindSpecSchema } from "../kind-spec.ts";
import { allSucceeded, everyoneVerdict, leaderVerdict } from "../verdicts.ts";
import {
  ELASTIC_POLICY,
  elasticEnv,
  elasticErrors,
  elasticProcesses,
  elasticWorkers,
  isElastic,
  masterWarning,
} from "./elastic.ts";
import { boundedRoleName } from "./role-name.ts";

const ROLES = [
  { name: "Master", min: 0, max: 1 },
  { name: "Worker", min: 0, max: null },
];
const PORT = { name: "pytorchjob-port", number: 23456 };
const CONTAINER = "pytorch";

/** Kubeflow's PyTorchJob: the environment of torchrun. The master leads; without a master, all workers lead. */
export const pytorchJob: Kind = {
  name: "PyTorchJob",
  description:
    "Distributed PyTorch: a master and workers find each other by MASTER_ADDR and the PET_ variables of torchrun. " +
    "Succeeds with the master; without a master, when all workers have succeeded.",
  apiVersion: "kubeflow.org/v1",
  replicaSpecsField: "pytorchReplicaSpecs",
  operatorName: "pytorchjob-controller",
  defaultContainer: CONTAINER,
  containerRequired: true,
  defaultPort: PORT,
  roles: ROLES,
  roleName: boundedRoleName(ROLES),
  defaults: { restartPolicy: "OnFailure", restartScope: "REPLICA", backoffLimit: null },
  kindSpecSchema: kindSpecSchema("PyTorchJob", {
    nprocPerNode: {
      type: ["string", "integer"],
      pattern: "^(auto|cpu|gpu|[1-9][0-9]{0,5})$",
      minimum: 1,
      maximum: 999_999,
      default: "auto",
      description: "Processes per node: auto, cpu, gpu or a number.",
      "x-allowed": "auto, cpu, gpu or a positive number",
    },
    elasticPolicy: ELASTIC_POLICY,
  }),
  validate: elasticErrors,
  warn: masterWarning,
  example: exampleManifest({
    apiVersion: "kubeflow.org/v1",
    kind: "PyTorchJob",
    replicaSpecsField: "pytorchReplicaSpecs",
    container: CONTAINER,
    image: "docker.io/kubeflowkatib/pytorch-mnist:v1beta1-45c5727",
    replicas: { Master: 1, Worker: 2 },
  }),
  clusterSpec,
  objects: () => [],
  countedInit: ({ replicaSpecs }, role) => {
    const waits = role === "Worker" && (replicaSpecs["Master"]?.replicas ?? 0) > 0;
    return waits ? [{ resources: WAIT_RESOURCES }] : [];
  },
  isMaster: (members, role, index) => index === 0 && role === ((members["Master"] ?? 0) > 0 ? "Master" : "Worker"),
  elasticRoles: elasticWorkers,
  verdict,
};

/**
 * The job ends with its leader. For elastic workers without a master, one success is enough, because the others follow
 * it (Kubeflow).
 */
function verdict(states: readonly RoleState[], kindSpec: JsonObject): Verdict {
  const leader = ["Master", "Worker"].find((role) => states.some((state) => state.role === role));
  if (leader === undefined) return everyoneVerdict(states);
  const oneIsEnough = leader === "Worker" && isElastic(kindSpec);
  return leaderVerdict(states, {
    leads: (state) => state.role === leader,
    done: (state) => allSucceeded(state) || (oneIsEnough && state.succeeded > 0),
  });
}

/** The variables of torchrun for every container. Workers also get an init container that waits for the master. */
function clusterSpec(replica: Replica): ClusterSpec {
  const hasMaster = (replica.members["Master"] ?? 0) > 0;
  const master = replicaName(replica.jobName, "Master", 0);
  const env = [...(hasMaster ? masterEnv(replica, master) : []), ...nodeEnv(replica)];
  return {
    env: everyContainer(replica, env),
    defaultEnv: pythonEnv(replica),
    initContainers: hasMaster && replica.role === "Worker" ? [waitForName(master, replica.initImage)] : [],
  };
}

function masterEnv(replica: Replica, master: string): EnvVar[] {
  const port = String(portOf(replica.spec, "Master", pytorchJob));
  const nodes = memberCount(replica.members);
  const rank = String(replica.role === "Worker" ? replica.index + 1 : replica.index);
  return [
    { name: "MASTER_PORT", value: port },
    { name: "PET_MASTER_PORT", value: port },
    { name: "MASTER_ADDR", value: master },
    { name: "PET_MASTER_ADDR", value: master },
    { name: "WORLD_SIZE", value: String(nodes * processesPerNode(replica.spec.kindSpec)) },
    { name: "RANK", value: rank },
    { name: "PET_NODE_RANK", value: rank },
  ];
}

function nodeEnv(replica: Replica): EnvVar[] {
  const { kindSpec } = replica.spec;
  const perNode = kindSpec["nprocPerNode"] ?? elasticProcesses(kindSpec) ?? "auto";
  const nodes = { name: "PET_NNODES", value: String(memberCount(replica.members)) };
  return [
    { name: "PET_NPROC_PER_NODE", value: String(perNode) },
    ...(isElastic(kindSpec) ? elasticEnv(replica, portOf(replica.spec, "Worker", pytorchJob)) : [nodes]),
  ];
}

/** The number of processes on each node. 1 if torchrun finds it out itself. */
function processesPerNode(kindSpec: JsonObject): number {
  const count = Number(kindSpec["nprocPerNode"]);
  return Number.isInteger(count) && count > 0 ? count : 1;
}

const WAIT_RESOURCES = { requests: { cpu: "50m", memory: "10Mi" }, limits: { cpu: "100m", memory: "20Mi" } };

/**
 * An init container that waits until the name of the master resolves, because workers would give up before that. After
 * 100 tries, two seconds apart, the container fails and is restarted.
 */
function waitForName(host: string, image: string): JsonObject {
  const look = `nslookup ${host} && exit 0; echo waiting for ${host}; sleep 2`;
  const script = `for try in $(seq 1 100); do ${look}; done; exit 1`;
  return {
    name: "init-pytorch",
    image,
    imagePullPolicy: "IfNotPresent",
    command: ["sh", "-c", script],
    resources: WAIT_RESOURCES,
  };
}
