/** The JobSet of a runtime, while a TrainJob is made from it. */
import {
  arrayAt,
  isJsonObject,
  type Json,
  type JsonObject,
  numberAt,
  objectAt,
  stringAt,
} from "../../../runtime/json.ts";
import { merged } from "./strategic-merge.ts";
import { ANCESTOR_STEP } from "./training-runtime.ts";

export const LAUNCHER = "launcher";

/** A group of child jobs of a JobSet. */
export type RuntimeGroup = JsonObject;

export function groupsOf(jobSet: JsonObject): readonly RuntimeGroup[] {
  return arrayAt(jobSet, "replicatedJobs").filter(isJsonObject);
}

export function nameOf(of: Json): string {
  return stringAt(of, "name") ?? "";
}

export function stepOf(group: RuntimeGroup): string | undefined {
  return stringAt(objectAt(objectAt(objectAt(group, "template"), "metadata"), "labels"), ANCESTOR_STEP);
}

/** The spec of a group's child jobs. */
export function jobOf(group: RuntimeGroup): JsonObject {
  return objectAt(objectAt(group, "template"), "spec");
}

export function podSpecOf(group: RuntimeGroup): JsonObject {
  return objectAt(objectAt(jobOf(group), "template"), "spec");
}

/** How many pods a child job of the group has. */
export function podsOf(group: RuntimeGroup): number {
  return numberAt(jobOf(group), "parallelism") ?? 1;
}

/** A container or init container of that name. */
export function containerOf(group: RuntimeGroup, name: string): JsonObject | undefined {
  const podSpec = podSpecOf(group);
  return [...arrayAt(podSpec, "containers"), ...arrayAt(podSpec, "initContainers")]
    .filter(isJsonObject)
    .find((container) => nameOf(container) === name);
}

/** The JobSet with the groups that `change` returns. */
export function withGroups(jobSet: JsonObject, change: (group: RuntimeGroup) => RuntimeGroup): JsonObject {
  return { ...jobSet, replicatedJobs: groupsOf(jobSet).map(change) };
}

/** The group with so many pods in each child job. */
export function withPods(group: RuntimeGroup, count: number): RuntimeGroup {
  return merged(group, { template: { spec: { parallelism: count, completions: count } } });
}

/** The group with another container of that name. */
export function withContainer(
  group: RuntimeGroup,
  name: string,
  change: (container: JsonObject) => JsonObject,
): RuntimeGroup {
  const template = objectAt(group, "template");
  const job = objectAt(template, "spec");
  const pod = objectAt(job, "template");
  const podSpec = objectAt(pod, "spec");
  const changed = (list: string): JsonObject => {
    if (podSpec[list] === undefined) return {};
    const containers = arrayAt(podSpec, list).map((one) =>
      isJsonObject(one) && nameOf(one) === name ? change(one) : one,
    );
    return { [list]: containers };
  };
  const spec = { ...podSpec, ...changed("containers"), ...changed("initContainers") };
  return { ...group, template: { ...template, spec: { ...job, template: { ...pod, spec } } } };
}

/** The container with these variables, which take the place of its own of the same names. */
export function withEnv(container: JsonObject, env: readonly Json[]): JsonObject {
  return env.length === 0
    ? container
    : { ...container, env: merged({ env: container["env"] ?? [] }, { env })["env"] ?? [] };
}

/** The container with a port, unless it has one of that number. */
export function withPort(container: JsonObject, containerPort: number): JsonObject {
  const ports = arrayAt(container, "ports");
  if (ports.some((port) => numberAt(port, "containerPort") === containerPort)) return container;
  return { ...container, ports: [...ports, { containerPort }] };
}
