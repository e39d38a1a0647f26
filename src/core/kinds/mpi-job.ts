import { arrayAt, type JsonObject, objectAt, stringAt } from "../../runtime/json.ts";
import { podSpecOf } from "./containers.ts";
import { exampleManifest } from "./example.ts";
import type { ClusterSpec, EnvVar, Kind, Replica } from "./kind.ts";
import { integerSchema, kindSpecSchema } from "./kind-spec.ts";
import {
  accountOf,
  CONFIG_PATH,
  configName,
  HOSTFILE,
  KUBECTL_PATH,
  KUBEXEC,
  mpiObjects,
  usesGpus,
} from "./mpi-objects.ts";
import { boundedRoleName } from "./role-name.ts";
import { allSucceeded, leaderVerdict } from "./verdicts.ts";

const ROLES = [
  { name: "Launcher", min: 1, max: 1, unnumbered: true },
  { name: "Worker", min: 0, max: null },
] as const;
const CONFIG_VOLUME = "mpi-job-config";
const KUBECTL_VOLUME = "mpi-job-kubectl";

/**
 * Kubeflow's MPIJob: a launcher that runs `mpirun`, which starts its processes in the workers' containers through `kubectl exec`. Any job's
 * workers may come and go while it runs, as with Kubeflow's controller: whether its program takes notice, as elastic Horovod does, is its own.
 */
export const mpiJob: Kind = {
  name: "MPIJob",
  description:
    "MPI, Horovod and the like: a launcher whose mpirun starts processes in the workers by kubectl exec; succeeds with the launcher.",
  apiVersion: "kubeflow.org/v1",
  replicaSpecsField: "mpiReplicaSpecs",
  operatorName: "mpijob-controller",
  defaultContainer: "mpi",
  containerRequired: false,
  defaultPort: null,
  roles: ROLES,
  roleName: boundedRoleName(ROLES),
  defaults: { restartPolicy: "Never", restartScope: "REPLICA", backoffLimit: null },
  kindSpecSchema: kindSpecSchema("MPIJob", {
    slotsPerWorker: { ...integerSchema("Processes that a worker takes.", { minimum: 1 }), default: 1 },
    mainContainer: {
      type: "string",
      description: "The container that processes are started in, and that mpirun runs in; absent: the first.",
    },
  }),
  validate: () => [],
  example: exampleManifest({
    apiVersion: "kubeflow.org/v1",
    kind: "MPIJob",
    replicaSpecsField: "mpiReplicaSpecs",
    container: "mpi",
    image: "horovod/horovod:0.28.1",
    replicas: { Launcher: 1, Worker: 2 },
  }),
  clusterSpec: (replica) => (replica.role === "Launcher" ? launcherSpec(replica) : workerSpec(replica)),
  objects: mpiObjects,
  elasticRoles: () => ROLES.filter(({ name }) => name === "Worker"),
  isMaster: (_members, role) => role === "Launcher",
  verdict: (states) => leaderVerdict(states, { leads: ({ role }) => role === "Launcher", done: allSucceeded }),
};

function launcherSpec(replica: Replica): ClusterSpec {
  const container = nameOf(mainContainer(replica));
  const kubectl = { name: KUBECTL_VOLUME, mountPath: KUBECTL_PATH };
  const config = { name: CONFIG_VOLUME, mountPath: CONFIG_PATH };
  return {
    env: { [container]: launcherEnv(replica) },
    initContainers: [bringKubectl(replica, [kubectl, config])],
    volumes: [{ name: KUBECTL_VOLUME, emptyDir: {} }, configVolume(replica)],
    volumeMounts: { [container]: [kubectl, config] },
    serviceAccount: accountOf(replica),
  };
}

/**
 * What makes Open MPI and Intel MPI start processes by our script; a launcher that asks for no GPU is not to see any. How Intel MPI starts them
 * is the template's to say otherwise.
 */
function launcherEnv(replica: Replica): readonly EnvVar[] {
  const script = `${CONFIG_PATH}/${KUBEXEC}`;
  const said = arrayAt(mainContainer(replica), "env").map((one) => stringAt(one, "name"));
  const intel = [
    { name: "I_MPI_HYDRA_BOOTSTRAP", value: "rsh" },
    { name: "I_MPI_HYDRA_BOOTSTRAP_EXEC", value: script },
  ];
  const hidden = [
    { name: "NVIDIA_VISIBLE_DEVICES", value: "" },
    { name: "NVIDIA_DRIVER_CAPABILITIES", value: "" },
  ];
  return [
    { name: "OMPI_MCA_plm_rsh_agent", value: script },
    { name: "OMPI_MCA_orte_default_hostfile", value: `${CONFIG_PATH}/${HOSTFILE}` },
    ...(usesGpus(replica) ? [] : hidden),
    ...intel.filter(({ name }) => !said.includes(name)),
  ];
}

/** A worker waits to be used; it has the script too, since Open MPI looks for it wherever it starts. */
function workerSpec(replica: Replica): ClusterSpec {
  const container = nameOf(mainContainer(replica));
  return {
    env: {},
    initContainers: [],
    volumes: [configVolume(replica)],
    volumeMounts: { [container]: [{ name: CONFIG_VOLUME, mountPath: CONFIG_PATH }] },
    command: { [container]: { command: ["sleep"], args: ["365d"] } },
  };
}

/** Where `kubectl exec` leads: the container that the job names, else the first, whatever it is called. Source: Kubeflow's newWorker. */
function mainContainer(replica: Replica): JsonObject {
  const containers = arrayAt(podSpecOf(replica, replica.role), "containers");
  const named = stringAt(replica.spec.kindSpec, "mainContainer") ?? "";
  return objectAt({ main: containers.find((one) => stringAt(one, "name") === named) ?? containers[0] }, "main");
}

function nameOf(container: JsonObject): string {
  return stringAt(container, "name") ?? "";
}

function configVolume(replica: Replica): JsonObject {
  return { name: CONFIG_VOLUME, configMap: { name: configName(replica.jobName), defaultMode: 0o555 } };
}

/**
 * Copies `kubectl` to where the scripts expect it, then waits until every worker runs, so that the first exec finds them. One that leaves the
 * hosts file meanwhile is not waited for.
 */
function bringKubectl(replica: Replica, volumeMounts: readonly JsonObject[]): JsonObject {
  const kubectl = `${KUBECTL_PATH}/kubectl`;
  const script = [
    "set -e",
    `cp "$(command -v kubectl)" ${kubectl}`,
    `for host in $(sed 's/ .*//' ${CONFIG_PATH}/${HOSTFILE}); do`,
    `  [ "$host" = "$HOSTNAME" ] && continue`,
    `  while grep -q "^$host " ${CONFIG_PATH}/${HOSTFILE}; do`,
    `    ${kubectl} get pod "$host" -o 'jsonpath={.status.phase}' | grep -q Running && break`,
    "    sleep 2",
    "  done",
    "done",
  ].join("\n");
  const share = { cpu: "100m", memory: "128Mi" };
  return {
    name: "kubectl-delivery",
    image: replica.kubectlImage,
    imagePullPolicy: "IfNotPresent",
    command: ["sh", "-c", script],
    env: [{ name: "HOSTNAME", valueFrom: { fieldRef: { fieldPath: "metadata.name" } } }],
    volumeMounts,
    resources: { requests: share, limits: share },
  };
}
