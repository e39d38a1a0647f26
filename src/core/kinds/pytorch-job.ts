import type { Json, JsonObject } from "../../runtime/json.ts";
import { arrayAt, objectAt, stringAt } from "../../runtime/json.ts";
import { replicaName } from "../job/names.ts";
import { memberCount } from "../job/roles.ts";
import { exampleManifest } from "./example.ts";
import type { ClusterSpec, EnvVar, Kind, Replica, RoleState } from "./kind.ts";
import { portOf } from "./port.ts";
import { boundedRoleName } from "./role-name.ts";
import { allSucceeded, everyoneVerdict, leaderVerdict } from "./verdicts.ts";

const ROLES = [
  { name: "Master", min: 0, max: 1 },
  { name: "Worker", min: 0, max: null },
];
const PORT = { name: "pytorchjob-port", number: 23456 };
const CONTAINER = "pytorch";

/** Kubeflow's PyTorchJob: torchrun's environment, led by the master, or by all workers where there is none. */
export const pytorchJob: Kind = {
  name: "PyTorchJob",
  description:
    "Distributed PyTorch: a master and workers that find each other by MASTER_ADDR and torchrun's PET_ variables; succeeds with the master, or with all workers where there is none.",
  apiVersion: "kubeflow.org/v1",
  replicaSpecsField: "pytorchReplicaSpecs",
  operatorName: "pytorchjob-controller",
  defaultContainer: CONTAINER,
  defaultPort: PORT,
  roles: ROLES,
  roleName: boundedRoleName(ROLES),
  defaults: { restartPolicy: "OnFailure", restartScope: "REPLICA", backoffLimit: null },
  kindSpecFields: { nprocPerNode: checkNprocPerNode },
  unservedFields: ["elasticPolicy"],
  kindSpecSchema: {
    type: "object",
    additionalProperties: false,
    properties: {
      nprocPerNode: {
        type: "string",
        pattern: "^(auto|cpu|gpu|[1-9][0-9]*)$",
        default: "auto",
        description: "Processes per node: auto, cpu, gpu or a number.",
      },
    },
  },
  example: exampleManifest({
    apiVersion: "kubeflow.org/v1",
    kind: "PyTorchJob",
    replicaSpecsField: "pytorchReplicaSpecs",
    container: CONTAINER,
    image: "docker.io/kubeflowkatib/pytorch-mnist:v1beta1-45c5727",
    replicas: { Master: 1, Worker: 2 },
  }),
  clusterSpec,
  isMaster: (members, role, index) => index === 0 && role === ((members["Master"] ?? 0) > 0 ? "Master" : "Worker"),
  verdict,
};

function verdict(states: readonly RoleState[]) {
  const leader = ["Master", "Worker"].find((role) => states.some((state) => state.role === role));
  if (leader === undefined) return everyoneVerdict(states);
  return leaderVerdict(states, { leads: (state) => state.role === leader, done: allSucceeded });
}

/** torchrun's variables for every container, and for workers an init container that waits for the master's name. */
function clusterSpec(replica: Replica): ClusterSpec {
  const hasMaster = (replica.members["Master"] ?? 0) > 0;
  const master = replicaName(replica.jobName, "Master", 0);
  const env = [
    { name: "PYTHONUNBUFFERED", value: "1" },
    ...(hasMaster ? masterEnv(replica, master) : []),
    ...nodeEnv(replica),
  ];
  const podSpec = objectAt(replica.spec.replicaSpecs[replica.role]?.template, "spec");
  const names = arrayAt(podSpec, "containers").map((container) => stringAt(container, "name") ?? "");
  return {
    env: Object.fromEntries(names.map((name) => [name, env])),
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
  const perNode = replica.spec.kindSpec["nprocPerNode"];
  return [
    { name: "PET_NPROC_PER_NODE", value: perNode === undefined || perNode === null ? "auto" : String(perNode) },
    { name: "PET_NNODES", value: String(memberCount(replica.members)) },
  ];
}

/** 1 where the number is torchrun's to find out. */
function processesPerNode(kindSpec: JsonObject): number {
  const count = Number(kindSpec["nprocPerNode"]);
  return Number.isInteger(count) && count > 0 ? count : 1;
}

function checkNprocPerNode(value: Json): string | null {
  const text = typeof value === "number" ? String(value) : value;
  if (typeof text === "string" && /^(auto|cpu|gpu|[1-9]\d{0,5})$/.test(text)) return null;
  return "must be auto, cpu, gpu or a positive number";
}

/** Workers that start before the master has a name would give up; 100 tries at two seconds, then the container fails and is restarted. */
function waitForName(host: string, image: string): JsonObject {
  const script = `for try in $(seq 1 100); do nslookup ${host} && exit 0; echo waiting for ${host}; sleep 2; done; exit 1`;
  return {
    name: "init-pytorch",
    image,
    imagePullPolicy: "IfNotPresent",
    command: ["sh", "-c", script],
    resources: { requests: { cpu: "50m", memory: "10Mi" }, limits: { cpu: "100m", memory: "20Mi" } },
  };
}
