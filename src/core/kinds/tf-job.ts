import { replicaName } from "../job/names.ts";
import { memberCount, rolesOf } from "../job/roles.ts";
import { exampleManifest } from "./example.ts";
import type { ClusterSpec, Kind, Replica, RoleState } from "./kind.ts";
import { portOf } from "./port.ts";
import { boundedRoleName } from "./role-name.ts";
import { allSucceeded, everyoneVerdict, leaderVerdict } from "./verdicts.ts";

const ROLES = [
  { name: "Chief", min: 0, max: 1 },
  { name: "Master", min: 0, max: 1 },
  { name: "Evaluator", min: 0, max: 1 },
  { name: "PS", min: 0, max: null },
  { name: "Worker", min: 0, max: null },
];
const PORT = { name: "tfjob-port", number: 2222 };
const CONTAINER = "tensorflow";

/** Kubeflow's TFJob: TF_CONFIG, led by chief or master, or by the workers where there is neither. */
export const tfJob: Kind = {
  name: "TFJob",
  description:
    "Distributed TensorFlow: chief, master, parameter servers, workers and evaluator that find each other by TF_CONFIG; succeeds with the chief or master, else with worker 0 or all workers.",
  apiVersion: "kubeflow.org/v1",
  replicaSpecsField: "tfReplicaSpecs",
  operatorName: "tfjob-controller",
  defaultContainer: CONTAINER,
  defaultPort: PORT,
  roles: ROLES,
  roleName: boundedRoleName(ROLES),
  defaults: { restartPolicy: "Never", restartScope: "REPLICA", backoffLimit: null },
  kindSpecFields: {},
  unservedFields: ["successPolicy", "enableDynamicWorker"],
  kindSpecSchema: { type: "object", additionalProperties: false, properties: {} },
  example: exampleManifest({
    apiVersion: "kubeflow.org/v1",
    kind: "TFJob",
    replicaSpecsField: "tfReplicaSpecs",
    container: CONTAINER,
    image: "kubeflow/tf-mnist-with-summaries:latest",
    replicas: { Chief: 1, PS: 1, Worker: 2 },
  }),
  clusterSpec,
  isMaster: (members, role, index) =>
    hasChief(Object.keys(members).filter((name) => (members[name] ?? 0) > 0))
      ? role === "Chief" || role === "Master"
      : role === "Worker" && index === 0,
  verdict,
};

function hasChief(roles: readonly string[]): boolean {
  return roles.includes("Chief") || roles.includes("Master");
}

function verdict(states: readonly RoleState[]) {
  const roles = states.map((state) => state.role);
  if (hasChief(roles)) {
    return leaderVerdict(states, { leads: ({ role }) => role === "Chief" || role === "Master", done: allSucceeded });
  }
  if (!roles.includes("Worker")) return everyoneVerdict(states);
  return leaderVerdict(states, {
    leads: ({ role }) => role === "Worker",
    done: (state) => allSucceeded(state) || state.firstExitedZero,
  });
}

/** TF_CONFIG for the default container; a gang of one is local training and gets none. */
function clusterSpec(replica: Replica): ClusterSpec {
  if (memberCount(replica.members) === 1) return { env: {}, initContainers: [] };
  const cluster: Record<string, string[]> = {};
  for (const role of rolesOf(replica.spec)) {
    const count = replica.members[role] ?? 0;
    if (count > 0)
      cluster[role.toLowerCase()] = Array.from({ length: count }, (_, index) => address(replica, role, index));
  }
  const task = { type: replica.role.toLowerCase(), index: replica.index };
  const value = JSON.stringify({ cluster, task, environment: "cloud" });
  return { env: { [CONTAINER]: [{ name: "TF_CONFIG", value }] }, initContainers: [] };
}

function address(replica: Replica, role: string, index: number): string {
  const domain = replica.clusterDomain === "" ? "" : `.${replica.clusterDomain}`;
  const host = `${replicaName(replica.jobName, role, index)}.${replica.namespace}.svc${domain}`;
  return `${host}:${portOf(replica.spec, role, tfJob)}`;
}
