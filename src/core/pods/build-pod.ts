import type { Json, JsonObject } from "../../runtime/json.ts";
import { arrayAt, isJsonObject, objectAt, stringAt, stringMapAt } from "../../runtime/json.ts";
import { LABEL } from "../job/labels.ts";
import type { RestartPolicy, RestartScope } from "../job/spec.ts";
import { requireNodeLabels } from "./build-affinity.ts";
import { admissionLabels, type Ownership, replicaLabels } from "./build-labels.ts";
import { type Known, placesOf, renderContainer, type Variables, variableEnv } from "./variables.ts";
import { mapContainers } from "./with-named.ts";

/** One start of one replica, and what its kind adds to the pod. */
export type PodReplica = {
  readonly name: string;
  readonly role: string;
  readonly index: number;
  readonly attempt: number;
  readonly isMaster: boolean;
  readonly template: JsonObject;
  readonly restartPolicy: RestartPolicy;
  readonly restartScope: RestartScope;
  /** Whether this attempt may be taken away for others; null: the job never was interruptible. */
  readonly interruptible: boolean | null;
  /** Labels that its node must carry. */
  readonly nodeLabels: Readonly<Record<string, string>>;
  /** Environment by container name, after the container's own. */
  readonly env: Readonly<Record<string, readonly JsonObject[]>>;
  readonly initContainers: readonly JsonObject[];
  readonly volumes: readonly JsonObject[];
  /** By container name. */
  readonly volumeMounts: Readonly<Record<string, readonly JsonObject[]>>;
  /** By container name: what runs where the template names no command. */
  readonly command: Readonly<Record<string, { readonly command: readonly string[]; readonly args: readonly string[] }>>;
  /** Runs the pod where the template names no account; null: the namespace's default does. */
  readonly serviceAccount: string | null;
  /** What the pod is told of itself: as environment, and in the commands and arguments of its template. */
  readonly variables: Variables;
  /** The job's annotations, which commands and arguments may refer to. */
  readonly annotations: Readonly<Record<string, string>>;
  /** The job's inputs, which they may name too. */
  readonly inputs: JsonObject;
  /** Declared on the default container unless a port of that name is; null: none. */
  readonly port: { readonly container: string; readonly name: string; readonly number: number } | null;
};

/**
 * The manifest of a replica's pod: the template as the job has it (`shapeTemplate` made it what the platform wants), plus names, labels, what
 * its kind adds, the admitted flavor's nodes, and what the pod is told of itself. Only the restart policy is overwritten. The same replica
 * gives the same manifest.
 */
export function buildPod(ownership: Ownership, replica: PodReplica): JsonObject {
  const metadata = objectAt(replica.template, "metadata");
  const { template, variables } = replica;
  const places = placesOf(template, replica);
  const known = { ...replica, variables: { ...variables, ...places } };
  const podSpec = mapContainers(objectAt(template, "spec"), (container) => tellContainer(container, variables, known));
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: {
      ...metadata,
      name: replica.name,
      namespace: ownership.job.namespace,
      labels: { ...stringMapAt(metadata, "labels"), ...podLabels(ownership, replica) },
    },
    spec: {
      ...podSpec,
      ...requireNodeLabels(podSpec, replica.nodeLabels),
      ...appended(podSpec, "initContainers", replica.initContainers),
      ...appended(podSpec, "volumes", replica.volumes),
      ...withAccount(podSpec, replica.serviceAccount),
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
    ...(replica.interruptible === null ? {} : { [LABEL.interruptible]: String(replica.interruptible) }),
    ...(replica.isMaster ? { [LABEL.jobRole]: "master" } : {}),
  };
}

/** What restarts a gang is us, not the kubelet; Kubernetes knows no ExitCode. */
function podRestartPolicy({ restartPolicy, restartScope }: PodReplica): string {
  return restartScope === "GANG" || restartPolicy === "ExitCode" ? "Never" : restartPolicy;
}

/** The member of an object that is a list, with more at its end; no member where there is nothing to add. */
function appended(object: JsonObject, member: string, added: readonly JsonObject[]): JsonObject {
  return added.length === 0 ? {} : { [member]: [...arrayAt(object, member), ...added] };
}

function withAccount(podSpec: JsonObject, account: string | null): JsonObject {
  return account === null || stringAt(podSpec, "serviceAccountName") ? {} : { serviceAccountName: account };
}

/** Before the kind adds anything: its commands are its own, and its variables come after the container's. */
function tellContainer(container: JsonObject, variables: Variables, known: Known): JsonObject {
  const env = variableEnv(container, variables);
  return {
    ...container,
    ...renderContainer(container, known),
    ...appended(container, "env", env),
  };
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
    ...withCommand(container, replica.command[name]),
    ...appended(container, "env", env),
    ...appended(container, "volumeMounts", replica.volumeMounts[name] ?? []),
    ...(declared ? {} : { ports: [...ports, { name: port.name, containerPort: port.number }] }),
  };
}

function withCommand(container: JsonObject, usual: PodReplica["command"][string] | undefined): JsonObject {
  if (usual === undefined || arrayAt(container, "command").length > 0) return {};
  return { command: usual.command, args: usual.args };
}
