import type { Json, JsonObject } from "../../../runtime/json.ts";
import { arrayAt, isJsonObject, objectAt, stringAt } from "../../../runtime/json.ts";
import type { JsonMeter } from "../../../runtime/json-bytes.ts";
import { LABEL } from "../../job/labels.ts";
import type { PlannedPlace } from "../../job/placement/placement.ts";
import type { RestartPolicy, RestartScope } from "../../job/spec.ts";
import { requireNodeLabels } from "../build-affinity.ts";
import { sizedTexts, type TextMaker, WHOLE_TEXTS } from "../text-maker.ts";
import {
  checkpointKeys,
  environmentOf,
  missingEnv,
  placesOf,
  renderContainer,
  renderer,
  type Variables,
  withOwnEnv,
} from "../variables.ts";
import { mapContainers } from "../with-named.ts";
import { admissionLabels, type Ownership, replicaLabels } from "./build-labels.ts";
import { describedPod, hostOf, type PodIdentity } from "./pod-identity.ts";
import { type PodPlacing, placedSpec } from "./pod-placing.ts";
import { steeredTo } from "./steer-pod.ts";

/** One attempt of one replica, and the parts that its kind adds to the pod. */
export type PodReplica = {
  readonly name: string;
  readonly role: string;
  readonly index: number;
  readonly attempt: number;
  readonly isMaster: boolean;
  readonly template: JsonObject;
  readonly restartPolicy: RestartPolicy;
  readonly restartScope: RestartScope;
  /** Whether this attempt is interruptible. Null: the job never was interruptible. */
  readonly interruptible: boolean | null;
  /** Labels that the node must have. */
  readonly nodeLabels: Readonly<Record<string, string>>;
  /** The node that the pod is planned on. Null: none is, or the cluster's own gang scheduler chooses. */
  readonly place: PlannedPlace | null;
  readonly identity: PodIdentity;
  /** Environment by container name. It takes the place of the container's own variables of the same names. */
  readonly env: Readonly<Record<string, readonly JsonObject[]>>;
  /** By name: variables that a container or init container gets unless it has its own of the same names. */
  readonly defaultEnv: Readonly<Record<string, readonly JsonObject[]>>;
  readonly initContainers: readonly JsonObject[];
  readonly volumes: readonly JsonObject[];
  /** By container name. */
  readonly volumeMounts: Readonly<Record<string, readonly JsonObject[]>>;
  /** By container name: the command of a container whose template names none. */
  readonly command: Readonly<Record<string, { readonly command: readonly string[]; readonly args: readonly string[] }>>;
  readonly placing: PodPlacing;
  /** The service account of a pod whose template names none. Null: the namespace's default. */
  readonly serviceAccount: string | null;
  /** Facts about the pod, which become environment variables and fill placeholders in commands and arguments. */
  readonly variables: Variables;
  /** The annotations of the job, for placeholders in commands and arguments. */
  readonly annotations: Readonly<Record<string, string>>;
  /** The inputs of the job, for placeholders in commands and arguments. */
  readonly inputs: JsonObject;
  /** The port to declare on the default container, unless it declares a port of that name. Null: none. */
  readonly port: { readonly container: string; readonly name: string; readonly number: number } | null;
};

/**
 * The manifest of a replica's pod. Starts from the job's template, which `shapeTemplate` adapted to the platform. Adds
 * names, labels, the objects of the kind, the nodes of the admitted flavor, and the pod's variables. Overwrites only
 * the restart policy. The same replica gives the same manifest. Placeholders may make it much larger than its template,
 * so measure it first (`measuredPod`).
 */
export function buildPod(ownership: Ownership, replica: PodReplica): JsonObject {
  return buildWith(ownership, replica, filler(replica, WHOLE_TEXTS));
}

/**
 * The same manifest with the placeholders of commands and arguments as they are written, so that it is as large as its
 * template. API servers take any text there.
 */
export function unfilledPod(ownership: Ownership, replica: PodReplica): JsonObject {
  return buildWith(ownership, replica, (text) => text);
}

/** The same manifest, with only the sizes of its texts. For `JsonMeter`: it is at least as large as the pod. */
export function measuredPod(ownership: Ownership, replica: PodReplica, meter: JsonMeter): JsonObject {
  return buildWith(ownership, replica, filler(replica, sizedTexts(meter)));
}

/** Fills in the placeholders of texts, and of the places that they name. */
function filler<T>({ template, annotations, inputs, ...of }: PodReplica, maker: TextMaker<T>): (text: string) => Json {
  const variables = Object.fromEntries(
    Object.entries(of.variables).map(([name, value]): [string, T] => [name, maker.of(value)]),
  );
  const checkpoints = checkpointKeys(of.variables, maker);
  const places = placesOf(template, { variables, annotations, inputs, checkpoints }, maker);
  const rendered = renderer({ variables: { ...variables, ...places }, annotations, inputs }, maker);
  return (text) => maker.json(rendered(text));
}

/** `made`: what a command or an argument becomes. */
function buildWith(ownership: Ownership, replica: PodReplica, made: (text: string) => Json): JsonObject {
  const { template } = replica;
  const { labels, ...described } = describedPod(objectAt(template, "metadata"), replica.identity);
  const env = environmentOf(replica.variables);
  const placed = placedSpec(objectAt(template, "spec"), replica.placing);
  const podSpec = mapContainers(placed, (container) => withVariables(container, env, made));
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: {
      ...described,
      name: replica.name,
      namespace: ownership.job.namespace,
      labels: { ...labels, ...podLabels(ownership, replica) },
    },
    spec: {
      ...podSpec,
      ...placing(podSpec, replica),
      ...initContainersOf(podSpec, replica),
      ...appended(podSpec, "volumes", replica.volumes),
      ...withAccount(podSpec, replica.serviceAccount),
      ...hostOf(replica.identity),
      containers: arrayAt(podSpec, "containers").map((container) => buildContainer(container, replica)),
      restartPolicy: podRestartPolicy(replica),
    },
  };
}

/** The members of a pod's spec that say which nodes may take it. */
function placing(podSpec: JsonObject, { nodeLabels, place }: PodReplica): JsonObject {
  const labeled = requireNodeLabels(podSpec, nodeLabels);
  return place === null ? labeled : steeredTo({ ...podSpec, ...labeled }, place);
}

/** The template's own init containers, which get the kind's default variables, and then those of the kind. */
function initContainersOf(podSpec: JsonObject, { initContainers, defaultEnv }: PodReplica): JsonObject {
  const own = arrayAt(podSpec, "initContainers");
  if (own.every((one) => defaultEnv[stringAt(one, "name") ?? ""] === undefined)) {
    return appended(podSpec, "initContainers", initContainers);
  }
  return { initContainers: [...own.map((one) => withDefaults(one, defaultEnv)), ...initContainers] };
}

function withDefaults(container: Json, defaultEnv: PodReplica["defaultEnv"]): Json {
  if (!isJsonObject(container)) return container;
  const missing = missingEnv(container, defaultEnv[stringAt(container, "name") ?? ""] ?? []);
  return { ...container, ...appended(container, "env", missing) };
}

function podLabels(ownership: Ownership, replica: PodReplica): Record<string, string> {
  return {
    ...admissionLabels(ownership),
    ...replicaLabels(replica.role, replica.index),
    [LABEL.attempt]: String(replica.attempt),
    ...(replica.interruptible === null ? {} : { [LABEL.interruptible]: String(replica.interruptible) }),
    ...(replica.place === null ? {} : { [LABEL.placement]: String(replica.place.version) }),
    ...(replica.isMaster ? { [LABEL.jobRole]: "master" } : {}),
  };
}

/** Gangway, not the kubelet, restarts the members of a gang. Kubernetes has no policy ExitCode. */
function podRestartPolicy({ restartPolicy, restartScope }: PodReplica): string {
  return restartScope === "GANG" || restartPolicy === "ExitCode" ? "Never" : restartPolicy;
}

/** The list of an object with items added at its end. Empty if there is nothing to add. */
function appended(object: JsonObject, member: string, added: readonly JsonObject[]): JsonObject {
  return added.length === 0 ? {} : { [member]: [...arrayAt(object, member), ...added] };
}

function withAccount(podSpec: JsonObject, account: string | null): JsonObject {
  return account === null || stringAt(podSpec, "serviceAccountName") ? {} : { serviceAccountName: account };
}

/**
 * Fills in placeholders and adds the pod's variables. Runs before the kind adds its parts: placeholders in the kind's
 * commands stay, and the kind's variables follow these, except those whose names the template has.
 */
function withVariables(
  container: JsonObject,
  variables: readonly JsonObject[],
  rendered: (text: string) => Json,
): JsonObject {
  return {
    ...container,
    ...renderContainer(container, rendered),
    ...appended(container, "env", missingEnv(container, variables)),
  };
}

function buildContainer(container: Json, replica: PodReplica): Json {
  if (!isJsonObject(container)) return container;
  const name = stringAt(container, "name") ?? "";
  const complete = objectAt({ container: withDefaults(container, replica.defaultEnv) }, "container");
  const port = replica.port?.container === name ? replica.port : null;
  const ports = arrayAt(container, "ports");
  const declared = port === null || ports.some((one) => stringAt(one, "name") === port.name);
  return {
    ...complete,
    ...withCommand(container, replica.command[name]),
    ...withOwnEnv(complete, replica.env[name] ?? []),
    ...appended(container, "volumeMounts", replica.volumeMounts[name] ?? []),
    ...(declared ? {} : { ports: [...ports, { name: port.name, containerPort: port.number }] }),
  };
}

function withCommand(container: JsonObject, fallback: PodReplica["command"][string] | undefined): JsonObject {
  if (fallback === undefined || arrayAt(container, "command").length > 0) return {};
  return { command: fallback.command, args: fallback.args };
}
