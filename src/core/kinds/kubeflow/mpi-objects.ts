import { arrayAt, isJsonObject, type JsonObject, numberAt, objectAt, stringAt } from "../../../runtime/json.ts";
import { LABEL } from "../../job/labels.ts";
import { partName, replicaName, soleReplicaName } from "../../job/names.ts";
import { podSpecOf } from "../containers.ts";
import type { Gang } from "../kind.ts";

/** The path of the config map in the pods, and the path of `kubectl` in the launcher. */
export const CONFIG_PATH = "/etc/mpi";
export const KUBECTL_PATH = "/opt/kube";
export const HOSTFILE = "hostfile";
export const KUBEXEC = "kubexec.sh";
const DISCOVER_HOSTS = "discover_hosts.sh";

export function configName(jobName: string): string {
  return partName(jobName, "config");
}

/**
 * The objects that a launcher needs to reach its workers: a config map with the hosts file and scripts, and an account
 * that may read pods of the namespace and run commands in the pods of this gang's workers. If the template names an
 * account, Gangway binds that one and creates none.
 */
export function mpiObjects(gang: Gang): readonly JsonObject[] {
  const name = partName(gang.jobName, "launcher");
  const account = accountOf(gang);
  const own = account === name ? [{ apiVersion: "v1", kind: "ServiceAccount", metadata: { name } }] : [];
  return [
    configMap(gang),
    ...own,
    launcherRole(gang, name),
    launcherBinding({ name, account, namespace: gang.namespace }),
  ];
}

/** The account that the launcher runs as. */
export function accountOf(gang: Pick<Gang, "jobName" | "spec">): string {
  const podSpec = podSpecOf(gang, "Launcher");
  return stringAt(podSpec, "serviceAccountName") || partName(gang.jobName, "launcher");
}

/** True if the launcher requests GPUs. It is then a host itself. Source: Kubeflow's isGPULauncher. */
export function usesGpus(gang: Pick<Gang, "spec">): boolean {
  return arrayAt(podSpecOf(gang, "Launcher"), "containers").some((container) => {
    const limits = isJsonObject(container) ? objectAt(objectAt(container, "resources"), "limits") : {};
    return Object.keys(limits).some((resource) => resource.includes("gpu"));
  });
}

function configMap(gang: Gang): JsonObject {
  return {
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata: { name: configName(gang.jobName) },
    data: { [HOSTFILE]: hostfile(gang), [KUBEXEC]: kubexec(gang), [DISCOVER_HOSTS]: discoverHosts(gang) },
  };
}

function slotsOf({ spec }: Gang): number {
  return numberAt(spec.kindSpec, "slotsPerWorker") ?? 1;
}

function workerNames({ jobName, members }: Gang): readonly string[] {
  return Array.from({ length: members["Worker"] ?? 0 }, (_, index) => replicaName(jobName, "Worker", index));
}

function hostfile(gang: Gang): string {
  const launcher = usesGpus(gang) ? [soleReplicaName(gang.jobName, "Launcher")] : [];
  return [...launcher, ...workerNames(gang)].map((host) => `${host} slots=${slotsOf(gang)}\n`).join("");
}

/** The script that MPI calls instead of `rsh`, with the host and then the command. */
function kubexec({ spec }: Gang): string {
  const main = stringAt(spec.kindSpec, "mainContainer") ?? "";
  const container = main === "" ? "" : ` --container '${main.replaceAll("'", "'\\''")}'`;
  const exec = `${KUBECTL_PATH}/kubectl exec "$POD_NAME"${container} -- /bin/sh -c "$*"`;
  return ["#!/bin/sh", "set -x", "POD_NAME=$1", "shift", exec, ""].join("\n");
}

/**
 * The script that elastic Horovod calls to discover hosts. It prints one line `host:slots` for each worker that runs
 * and is not being deleted. It asks the API server, which knows changes long before a kubelet updates the hosts file.
 */
function discoverHosts(gang: Gang): string {
  const slots = slotsOf(gang);
  const selector = [
    `${LABEL.jobUid}=${gang.jobUid}`,
    `${LABEL.admission}=${gang.admission}`,
    `${LABEL.replicaType}=worker`,
  ].join(",");
  const own = usesGpus(gang) ? [`echo ${soleReplicaName(gang.jobName, "Launcher")}:${slots}`] : [];
  const list = `${KUBECTL_PATH}/kubectl get pods --selector ${selector} --field-selector status.phase=Running`;
  const line = `{{.metadata.name}}:${slots}{{"\\n"}}`;
  const form = `'go-template={{range .items}}{{if .metadata.deletionTimestamp}}{{else}}${line}{{end}}{{end}}'`;
  return ["#!/bin/sh", ...own, `${list} --sort-by .metadata.name --output ${form}`, ""].join("\n");
}

/** Old versions of `kubectl exec` use POST, new versions try GET first. */
function launcherRole(gang: Gang, name: string): JsonObject {
  const hosts = workerNames(gang);
  const exec = { apiGroups: [""], resources: ["pods/exec"], verbs: ["create", "get"], resourceNames: hosts };
  return {
    apiVersion: "rbac.authorization.k8s.io/v1",
    kind: "Role",
    metadata: { name },
    // A rule without names would allow commands in all pods.
    rules: [
      { apiGroups: [""], resources: ["pods"], verbs: ["get", "list", "watch"] },
      ...(hosts.length === 0 ? [] : [exec]),
    ],
  };
}

function launcherBinding(of: {
  readonly name: string;
  readonly account: string;
  readonly namespace: string;
}): JsonObject {
  const { name, account, namespace } = of;
  return {
    apiVersion: "rbac.authorization.k8s.io/v1",
    kind: "RoleBinding",
    metadata: { name },
    subjects: [{ kind: "ServiceAccount", name: account, namespace }],
    roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "Role", name },
  };
}
