/**
 * Kubeflow's MPIJob. It serves users of MPI and Horovod, whose launcher starts processes in the workers' containers,
 * and users of elastic Horovod, whose workers may come and go.
 */
import { arrayAt, type JsonObject, objectAt, stringAt } from "../../../runtime/json.ts";
import { podSpecOf } from "../containers.ts";
import { exampleManifest } from "../example.ts";
import type { ClusterSpec, EnvVar, Kind, Replica } from "../kind.ts";
import { integerSchema, kindSpecSchema } from "../kind-spec.ts";
import { allSucceeded, leaderVerdict } from "../verdicts.ts";
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

const ROLES = [
  { name: "Launcher", min: 1, max: 1, unnumbered: true },
  { name: "Worker", min: 0, max: null, neverEnds: true },
] as const;
const CONFIG_VOLUME = "mpi-job-config";
const KUBECTL_VOLUME = "mpi-job-kubectl";

/**
 * Kubeflow's MPIJob: the launcher runs `mpirun`, which starts processes in the containers of the workers by `kubectl
 * exec`. The number of workers may change while a job runs, as with Kubeflow's controller. Only some programs, such as
 * elastic Horovod, make use of that.
 */
export const mpiJob: Kind = {
  name: "MPIJob",
  description:
    "MPI, Horovod and similar: mpirun in the launcher starts processes in the workers by kubectl exec. " +
    "Succeeds with the launcher.",
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
    slotsPerWorker: { ...integerSchema("Processes in each worker.", { minimum: 1 }), default: 1 },
    mainContainer: {
      type: "string",
      description: "The container that runs mpirun and its processes. Omitted: the first.",
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
  countedInit: (_spec, role) => (role === "Launcher" ? [{ resources: DELIVERY_RESOURCES }] : []),
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
    defaultEnv: { [container]: INTEL_ENV },
    initContainers: [kubectlDelivery(replica, [kubectl, config])],
    volumes: [{ name: KUBECTL_VOLUME, emptyDir: {} }, configVolume(replica)],
    volumeMounts: { [container]: [kubectl, config] },
    serviceAccount: accountOf(replica),
  };
}

const SCRIPT = `${CONFIG_PATH}/${KUBEXEC}`;

/** The variables by which Intel MPI starts processes through the script. A template may set them itself. */
const INTEL_ENV: readonly EnvVar[] = [
  { name: "I_MPI_HYDRA_BOOTSTRAP", value: "rsh" },
  { name: "I_MPI_HYDRA_BOOTSTRAP_EXEC", value: SCRIPT },
];

/**
 * The variables by which Open MPI starts processes through the script `kubexec.sh`. A launcher that requests no GPU
 * must not see any.
 */
function launcherEnv(replica: Replica): readonly EnvVar[] {
  const hidden = [
    { name: "NVIDIA_VISIBLE_DEVICES", value: "" },
    { name: "NVIDIA_DRIVER_CAPABILITIES", value: "" },
  ];
  return [
    { name: "OMPI_MCA_plm_rsh_agent", value: SCRIPT },
    { name: "OMPI_MCA_orte_default_hostfile", value: `${CONFIG_PATH}/${HOSTFILE}` },
    ...(usesGpus(replica) ? [] : hidden),
  ];
}

/** A worker sleeps until the launcher uses it. It has the script too, because Open MPI looks for it on every host. */
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

/**
 * The container in which `kubectl exec` runs commands: the one that the job names, else the first, under any name.
 * Source: Kubeflow's newWorker.
 */
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

const DELIVERY_SHARE = { cpu: "100m", memory: "128Mi" };
const DELIVERY_RESOURCES = { requests: DELIVERY_SHARE, limits: DELIVERY_SHARE };

/**
 * Copies `kubectl` to the path that the scripts use. Then waits until every worker runs, so that the first exec finds
 * them. Does not wait for a worker that leaves the hosts file meanwhile.
 */
function kubectlDelivery(replica: Replica, volumeMounts: readonly JsonObject[]): JsonObject {
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
  return {
    name: "kubectl-delivery",
    image: replica.kubectlImage,
    imagePullPolicy: "IfNotPresent",
    command: ["sh", "-c", script],
    env: [{ name: "HOSTNAME", valueFrom: { fieldRef: { fieldPath: "metadata.name" } } }],
    volumeMounts,
    resources: DELIVERY_RESOURCES,
  };
}
