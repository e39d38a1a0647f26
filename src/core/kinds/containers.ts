import { arrayAt, type JsonObject, objectAt, stringAt } from "../../runtime/json.ts";
import type { EnvVar, Gang, Replica } from "./kind.ts";

/** The pod spec that the template of a replica type holds. */
export function podSpecOf({ spec }: Pick<Gang, "spec">, role: string): JsonObject {
  return objectAt(spec.replicaSpecs[role]?.template, "spec");
}

/** The same variables for each container of a replica's pod. */
export function everyContainer(replica: Replica, env: readonly EnvVar[]): Readonly<Record<string, readonly EnvVar[]>> {
  const names = arrayAt(podSpecOf(replica, replica.role), "containers").map((one) => stringAt(one, "name") ?? "");
  return Object.fromEntries(names.map((name) => [name, env]));
}
