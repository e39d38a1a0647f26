import { arrayAt, type JsonObject, numberAt, objectAt, stringAt } from "../../runtime/json.ts";
import type { JobSpec } from "../job/spec.ts";
import type { EnvVar, Gang, Kind, Replica } from "./kind.ts";

/** The pod spec in the template of a replica type. */
export function podSpecOf({ spec }: Pick<Gang, "spec">, role: string): JsonObject {
  return objectAt(spec.replicaSpecs[role]?.template, "spec");
}

/** The names of the containers and init containers of a pod spec. */
export function containerNames(podSpec: JsonObject): readonly string[] {
  return [...namesIn(podSpec, "containers"), ...namesIn(podSpec, "initContainers")];
}

function namesIn(podSpec: JsonObject, list: "containers" | "initContainers"): readonly string[] {
  return arrayAt(podSpec, list).map((one) => stringAt(one, "name") ?? "");
}

/** The same variables for every container of a replica's pod, but not for its init containers. */
export function everyContainer(replica: Replica, env: readonly EnvVar[]): Readonly<Record<string, readonly EnvVar[]>> {
  return Object.fromEntries(namesIn(podSpecOf(replica, replica.role), "containers").map((name) => [name, env]));
}

/** Python writes its output at once, so that logs have it when it happens. A template may say otherwise. */
export function pythonEnv(replica: Replica): Readonly<Record<string, readonly EnvVar[]>> {
  return everyContainer(replica, [{ name: "PYTHONUNBUFFERED", value: "1" }]);
}

/**
 * The default container of a pod spec: the one with the kind's name for it, else the first. Empty without containers.
 */
export function defaultContainerOf(podSpec: JsonObject, kind: Pick<Kind, "defaultContainer">): JsonObject {
  const containers = arrayAt(podSpec, "containers");
  const named = containers.find((container) => stringAt(container, "name") === kind.defaultContainer);
  return objectAt({ container: named ?? containers[0] }, "container");
}

/** A port of a service. Omitted protocol: TCP. */
export type ServicePort = { readonly name: string; readonly port: number; readonly protocol?: string };

/**
 * The ports of a replica type's services: the kind's port, and every other port that its default container names. A
 * service cannot have two ports of one number and protocol: the first one counts. Source: Kubeflow's `GetPortsFromJob`.
 */
export function servicePortsOf(
  spec: JobSpec,
  role: string,
  kind: Pick<Kind, "defaultContainer" | "defaultPort">,
): readonly ServicePort[] {
  const podSpec = podSpecOf({ spec }, role);
  const own: ServicePort = { name: kind.defaultPort?.name ?? "", port: portOf(spec, role, kind) };
  const declared = arrayAt(defaultContainerOf(podSpec, kind), "ports").flatMap((declared): readonly ServicePort[] => {
    const [name = "", protocol = "TCP"] = [stringAt(declared, "name"), stringAt(declared, "protocol")];
    const port = numberAt(declared, "containerPort");
    if (name === "" || port === undefined) return [];
    return [{ name, port, ...(protocol === "TCP" ? {} : { protocol }) }];
  });
  const ports: ServicePort[] = [];
  for (const one of [...declared.filter(({ name }) => name === own.name), own, ...declared]) {
    const isTaken = ports.some(
      ({ name, port, protocol }) => name === one.name || (port === one.port && protocol === one.protocol),
    );
    if (!isTaken) ports.push(one);
  }
  return ports;
}

/**
 * The port of a replica type: the one that its default container declares under the kind's port name, else the kind's
 * default. 0: none.
 */
export function portOf(spec: JobSpec, role: string, kind: Pick<Kind, "defaultContainer" | "defaultPort">): number {
  const podSpec = podSpecOf({ spec }, role);
  const declared = arrayAt(defaultContainerOf(podSpec, kind), "ports").find(
    (port) => stringAt(port, "name") === kind.defaultPort?.name,
  );
  return numberAt(declared, "containerPort") ?? kind.defaultPort?.number ?? 0;
}
