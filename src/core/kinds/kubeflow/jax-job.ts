import { replicaName } from "../../job/names.ts";
import { memberCount } from "../../job/roles.ts";
import { everyContainer, portOf, pythonEnv } from "../containers.ts";
import { exampleManifest } from "../example.ts";
import type { ClusterSpec, Kind, Replica } from "../kind.ts";
import { kindSpecSchema } from "../kind-spec.ts";
import { allSucceeded, leaderVerdict } from "../verdicts.ts";
import { boundedRoleName } from "./role-name.ts";

const ROLES = [{ name: "Worker", min: 1, max: null }];

/** Kubeflow's JAXJob: `jax.distributed` connects the workers at worker 0. */
export const jaxJob: Kind = {
  name: "JAXJob",
  description:
    "Distributed JAX: workers meet at worker 0 by COORDINATOR_ADDRESS. Succeeds when all workers have succeeded.",
  apiVersion: "kubeflow.org/v1",
  replicaSpecsField: "jaxReplicaSpecs",
  operatorName: "jaxjob-controller",
  defaultContainer: "jax",
  containerRequired: true,
  defaultPort: { name: "jaxjob-port", number: 6666 },
  roles: ROLES,
  roleName: boundedRoleName(ROLES),
  defaults: { restartPolicy: "Never", restartScope: "REPLICA", backoffLimit: null },
  kindSpecSchema: kindSpecSchema("JAXJob"),
  validate: () => [],
  example: exampleManifest({
    apiVersion: "kubeflow.org/v1",
    kind: "JAXJob",
    replicaSpecsField: "jaxReplicaSpecs",
    container: "jax",
    image: "docker.io/kubeflow/jaxjob-simple:latest",
    replicas: { Worker: 2 },
  }),
  clusterSpec,
  objects: () => [],
  isMaster: (_members, _role, index) => index === 0,
  verdict: (states) => leaderVerdict(states, { leads: ({ role }) => role === "Worker", done: allSucceeded }),
};

function clusterSpec(replica: Replica): ClusterSpec {
  const env = [
    { name: "COORDINATOR_PORT", value: String(portOf(replica.spec, "Worker", jaxJob)) },
    { name: "COORDINATOR_ADDRESS", value: replicaName(replica.jobName, "Worker", 0) },
    { name: "NUM_PROCESSES", value: String(memberCount(replica.members)) },
    { name: "PROCESS_ID", value: String(replica.index) },
  ];
  return { env: everyContainer(replica, env), defaultEnv: pythonEnv(replica), initContainers: [] };
}
