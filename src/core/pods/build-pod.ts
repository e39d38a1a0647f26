import type { Json, JsonObject } from "../../runtime/json.ts";
import { arrayAt, isJsonObject, objectAt, stringAt, stringMapAt } from "../../runtime/json.ts";
import { LABEL } from "../job/labels.ts";
import { replicaName } from "../job/names.ts";
import type { RestartPolicy, RestartScope } from "../job/spec.ts";
import { requireNodeLabels } from "./build-affinity.ts";
import { admissionLabels, type Ownership, replicaLabels } from "./build-labels.ts";

/** One start of one replica, and what its kind adds to the pod. */
export type PodReplica = {
  readonly role: string;
  readonly index: number;
  readonly attempt: number;
  readonly isMaster: boolean;
  readonly template: JsonObject;
  readonly restartPolicy: RestartPolicy;
  readonly restartScope: RestartScope;
  /** Labels that its node must carry. */
  readonly nodeLabels: Readonly<Record<string, string>>;
  /** Environment by container name, after the container's own. */
  readonly env: Readonly<Record<string, readonly JsonObject[]>>;
  readonly initContainers: readonly JsonObject[];
  /** Declared on the default container unless a port of that name is; null: none. */
  readonly port: { readonly container: string; readonly name: string; readonly number: number } | null;
};

/**
 * The manifest of a replica's pod: the template as the user wrote it, plus names, labels, the kind's environment and init containers, and the
 * admitted flavor's nodes. Only the restart policy is overwritten. The same replica gives the same manifest.
 */
export function buildPod(ownership: Ownership, replica: PodReplica): JsonObject {
  const metadata = objectAt(replica.template, "metadata");
  const podSpec = objectAt(replica.template, "spec");
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: {
      ...metadata,
      name: replicaName(ownership.job.name, replica.role, replica.index),
      namespace: ownership.job.namespace,
      labels: { ...stringMapAt(metadata, "labels"), ...podLabels(ownership, replica) },
    },
    spec: {
      ...podSpec,
      ...requireNodeLabels(podSpec, replica.nodeLabels),
      ...withInitContainers(podSpec, replica.initContainers),
      containers: arrayAt(podSpec, "containers").map((container) => buildContainer(container, replica)),
      restartPolicy: podRestartPolicy(replica),
    },
  };
}

function podLabels(ownership: Ownership, replica: PodReplica): Record<string, string> {
  return {
    ...admissionLabels(ownership),
    ...replicaLabels(replica.role, replica.index),
    [LABEL.attempt]: String(replica.attempt),
    ...(replica.isMaster ? { [LABEL.jobRole]: "master" } : {}),
  };
}

/** What restarts a gang is us, not the kubelet; Kubernetes knows no ExitCode. */
function podRestartPolicy({ restartPolicy, restartScope }: PodReplica): string {
  return restartScope === "GANG" || restartPolicy === "ExitCode" ? "Never" : restartPolicy;
}

function withInitContainers(podSpec: JsonObject, added: readonly JsonObject[]): JsonObject {
  return added.length === 0 ? {} : { initContainers: [...arrayAt(podSpec, "initContainers"), ...added] };
}

function buildContainer(container: Json, replica: PodReplica): Json {
  if (!isJsonObject(container)) return container;
  const name = stringAt(container, "name") ?? "";
  const env = replica.env[name] ?? [];
  const port = replica.port?.container === name ? replica.port : null;
  const ports = arrayAt(container, "ports");
  const declared = port === null || ports.some((one) => stringAt(one, "name") === port.name);
  return {
    ...container,
    ...(env.length === 0 ? {} : { env: [...arrayAt(container, "env"), ...env] }),
    ...(declared ? {} : { ports: [...ports, { name: port.name, containerPort: port.number }] }),
  };
}
