/** The ports of a node that a pod takes. Two pods that need one port never run on one node. */
import { compareText } from "../../../runtime/compare-text.ts";
import { arrayAt, isJsonObject, type Json, type JsonObject, numberAt, stringAt } from "../../../runtime/json.ts";

/** A port that Gangway adds to a container, unless it declares one of that name. */
export type AddedPort = { readonly container: string; readonly name: string; readonly number: number };

/**
 * Names the ports, as `TCP host port 8080`, each once. In the node's network every port of a container is one of the
 * node. Two addresses of a port count as one. Sources: Kubernetes `defaultHostNetworkPorts`, `GetHostPorts`.
 */
export function hostPortsOf(podSpec: JsonObject, added: AddedPort | null = null): readonly string[] {
  const isHost = podSpec["hostNetwork"] === true;
  const sidecars = arrayAt(podSpec, "initContainers").filter((one) => stringAt(one, "restartPolicy") === "Always");
  const own = [...sidecars, ...arrayAt(podSpec, "containers")].flatMap((container) => {
    const ports = arrayAt(container, "ports");
    const isAdded = added !== null && stringAt(container, "name") === added.container && !declares(ports, added.name);
    return isAdded ? [...ports, { containerPort: added.number }] : ports;
  });
  const names = own.flatMap((port) => {
    const number = numberAt(port, "hostPort") || (isHost ? numberAt(port, "containerPort") : 0) || 0;
    return isJsonObject(port) && number > 0 ? [portName(stringAt(port, "protocol") || "TCP", number)] : [];
  });
  return [...new Set(names)].sort(compareText);
}

function declares(ports: readonly Json[], name: string): boolean {
  return ports.some((port) => stringAt(port, "name") === name);
}

const KIND = " host port ";

function portName(protocol: string, port: number): string {
  return protocol + KIND + port;
}

/** True for the name of a port of a node. No resource has such a name. */
export function isHostPort(name: string): boolean {
  return name.includes(KIND);
}

/** A node has each port once. In thousandths, as resources are counted. */
export const ONE_PORT = 1000;
