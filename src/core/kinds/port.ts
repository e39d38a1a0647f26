import type { JsonObject } from "../../runtime/json.ts";
import { arrayAt, numberAt, objectAt, stringAt } from "../../runtime/json.ts";
import type { JobSpec } from "../job/spec.ts";
import type { Kind } from "./kind.ts";

/** The default container of a pod spec: by the kind's name for it, else the first; empty without containers. */
export function defaultContainerOf(podSpec: JsonObject, kind: Pick<Kind, "defaultContainer">): JsonObject {
  const containers = arrayAt(podSpec, "containers");
  const named = containers.find((container) => stringAt(container, "name") === kind.defaultContainer);
  return objectAt({ container: named ?? containers[0] }, "container");
}

/** The port that a replica type serves: what its default container declares under the kind's port name, else the kind's own; 0 without one. */
export function portOf(spec: JobSpec, role: string, kind: Pick<Kind, "defaultContainer" | "defaultPort">): number {
  const podSpec = objectAt(spec.replicaSpecs[role]?.template, "spec");
  const declared = arrayAt(defaultContainerOf(podSpec, kind), "ports").find(
    (port) => stringAt(port, "name") === kind.defaultPort?.name,
  );
  return numberAt(declared, "containerPort") ?? kind.defaultPort?.number ?? 0;
}
