/**
 * What a runtime with the policy for MPI adds: a hosts file, and keys by which the launcher starts processes on the
 * nodes over SSH. Source: the plugin `mpi` of Trainer.
 */
import { arrayAt, type Json, type JsonObject, numberAt, objectAt, stringAt } from "../../../runtime/json.ts";
import { maxOf } from "../../../runtime/lists.ts";
import { partName } from "../../job/names.ts";
import { childPodName } from "../jobset/child-jobs.ts";
import type { ClusterSpec, Gang, Replica } from "../kind.ts";
import type { SentReader } from "../manifest/sent-reader.ts";
import { gpusOf } from "./node-resources.ts";
import {
  containerOf,
  groupsOf,
  LAUNCHER,
  nameOf,
  podsOf,
  type RuntimeGroup,
  withContainer,
  withEnv,
  withPods,
} from "./runtime-template.ts";
import type { TrainJobSpec } from "./train-job-spec.ts";
import { NODE } from "./training-runtime.ts";

const SSH_VOLUME = "mpi-ssh-auth";
const HOSTFILE_VOLUME = "mpi-hostfile";
const HOSTFILE = "hostfile";
const HOSTFILE_FOLDER = "/etc/mpi";
/** Source: the defaults of `MPIMLPolicySource`. */
const SSH_FOLDER = "/root/.ssh";
const OPEN_MPI = "OpenMPI";

/** The member of a kind spec with what the pods of a TrainJob need for MPI. */
export const MPI_FIELD = "mpi";

/** The JobSet with the pods and variables of the policy, and the member of the kind spec. */
export type WithMpi = { readonly jobSet: JsonObject; readonly field: JsonObject };

/** `policy`: the member `mpi` of the runtime's policies. */
export function withMpi(
  reader: SentReader,
  jobSet: JsonObject,
  { policy, trainJob }: { readonly policy: JsonObject; readonly trainJob: TrainJobSpec },
): WithMpi {
  const implementation = stringAt(policy, "mpiImplementation") ?? OPEN_MPI;
  if (implementation !== OPEN_MPI) {
    reader.fail("spec.runtimeRef", `has mpiImplementation ${implementation.slice(0, 63)}: only ${OPEN_MPI} is served`);
  }
  const launches = policy["runLauncherAsNode"] === true;
  const slots = slotsOf(jobSet, { policy, trainJob });
  const sized = groupsOf(jobSet).map((group) =>
    withVariables(sizedGroup(group, { trainJob, launches }), trainJob, slots),
  );
  const nodes = sized.filter((group) => nameOf(group) === NODE || (launches && nameOf(group) === LAUNCHER));
  return {
    jobSet: { ...jobSet, replicatedJobs: sized },
    field: { slots, sshAuthMountPath: stringAt(policy, "sshAuthMountPath") ?? SSH_FOLDER, nodes: nodes.map(nameOf) },
  };
}

/** The launcher is one of the nodes if the policy says so, and one node is left beside it at least. */
function sizedGroup(
  group: RuntimeGroup,
  { trainJob, launches }: { readonly trainJob: TrainJobSpec; readonly launches: boolean },
): RuntimeGroup {
  const { numNodes } = trainJob.trainer ?? {};
  if (nameOf(group) !== NODE || numNodes === undefined) return withPods(group, podsOf(group));
  return withPods(group, launches ? Math.max(numNodes - 1, 1) : numNodes);
}

/** The processes of a node. A runtime that says 1 means one for each GPU. */
function slotsOf(
  jobSet: JsonObject,
  { policy, trainJob }: { readonly policy: JsonObject; readonly trainJob: TrainJobSpec },
): number {
  const asked = trainJob.trainer?.numProcPerNode;
  if (asked !== undefined) return asked;
  const said = numberAt(policy, "numProcPerNode") ?? 1;
  const gpus = groupsOf(jobSet).map((group) => gpusOf(containerOf(group, NODE) ?? {}));
  return said === 1 ? Math.max(1, maxOf(gpus)) : said;
}

function withVariables(group: RuntimeGroup, { trainer }: TrainJobSpec, slots: number): RuntimeGroup {
  if (nameOf(group) !== LAUNCHER || trainer === null) return group;
  const env = {
    OMPI_MCA_orte_default_hostfile: `${HOSTFILE_FOLDER}/${HOSTFILE}`,
    OMPI_MCA_orte_keep_fqdn_hostnames: "true",
    OMPI_MCA_orte_set_default_slots: String(slots),
    OMPI_MCA_plm_rsh_args: "-o ConnectionAttempts=10",
  };
  return withContainer(group, NODE, (container) => {
    return withEnv(
      container,
      Object.entries(env).map(([name, value]) => ({ name, value })),
    );
  });
}

/** The volumes of a pod for MPI. Empty: its TrainJob has no such policy, or it takes no part. */
export function mpiVolumes(replica: Replica): Pick<ClusterSpec, "volumes" | "volumeMounts"> {
  const { spec, role } = replica;
  const field = spec.kindSpec[MPI_FIELD];
  if (field === undefined || (role !== NODE && role !== LAUNCHER)) return {};
  const launches = role === LAUNCHER;
  const keys = { name: SSH_VOLUME, mountPath: stringAt(field, "sshAuthMountPath") ?? SSH_FOLDER };
  const hosts = { name: HOSTFILE_VOLUME, mountPath: HOSTFILE_FOLDER };
  const podSpec = objectAt(spec.replicaSpecs[role]?.template, "spec");
  const mounts = arrayAt(podSpec, "containers").some((one) => nameOf(one) === NODE);
  return {
    volumes: [sshVolume(replica), ...(launches ? [hostsVolume(replica)] : [])],
    ...(mounts ? { volumeMounts: { [NODE]: launches ? [keys, hosts] : [keys] } } : {}),
  };
}

function sshVolume(gang: Gang): JsonObject {
  const items = [
    { key: "ssh-privatekey", path: "id_rsa", mode: 0o640 },
    { key: "ssh-publickey", path: "id_rsa.pub", mode: 0o644 },
    { key: "ssh-publickey", path: "authorized_keys", mode: 0o644 },
  ];
  return { name: SSH_VOLUME, secret: { secretName: sshSecretName(gang), items, defaultMode: 0o400 } };
}

function hostsVolume({ jobName }: Gang): JsonObject {
  const items = [{ key: HOSTFILE, path: HOSTFILE, mode: 0o444 }];
  return { name: HOSTFILE_VOLUME, configMap: { name: hostsName(jobName), items } };
}

/** Each admission has keys of its own, and nobody reads or lists secrets to see whether there are any. */
function sshSecretName({ jobUid, admission }: Gang): string {
  return `${SSH_VOLUME}-${jobUid}-${admission}`;
}

function hostsName(jobName: string): string {
  return partName(jobName, HOSTFILE_VOLUME);
}

/** The keys and the hosts file. Gangway makes the keys when it creates the secret. */
export function mpiObjects(gang: Gang): readonly JsonObject[] {
  const { spec, jobName } = gang;
  const field: Json = spec.kindSpec[MPI_FIELD] ?? null;
  if (field === null) return [];
  const subdomain = stringAt(objectAt(spec.kindSpec, "network"), "subdomain") ?? jobName;
  const slots = numberAt(field, "slots") ?? 1;
  const nodes = arrayAt(field, "nodes");
  const hosts = groupsOf(spec.kindSpec)
    .filter((group) => nodes.includes(nameOf(group)))
    .flatMap((group) => {
      const jobs = numberAt(group, "replicas") ?? 1;
      const pods = podsOf(group);
      return Array.from({ length: jobs * pods }, (_, at) => {
        const of = { group: nameOf(group), job: Math.floor(at / pods), pod: at % pods };
        return `${childPodName(jobName, of)}.${subdomain} slots=${slots}\n`;
      });
    });
  return [
    { apiVersion: "v1", kind: "Secret", metadata: { name: sshSecretName(gang) }, type: "kubernetes.io/ssh-auth" },
    {
      apiVersion: "v1",
      kind: "ConfigMap",
      metadata: { name: hostsName(jobName) },
      data: { [HOSTFILE]: hosts.join("") },
    },
  ];
}
