import type { Json, JsonObject } from "../../runtime/json.ts";
import { arrayAt, objectAt, stringAt } from "../../runtime/json.ts";
import { parseMilli } from "./quantity.ts";

/** Amounts by resource name, in thousandths of the resource's unit. They are exact, because they are below 2^53. */
export type Resources = Readonly<Record<string, number>>;

/** Reads a ResourceList. A text that is not a quantity counts as 0. */
export function readResources(list: JsonObject): Resources {
  const amounts: Record<string, number> = {};
  for (const [name, quantity] of Object.entries(list)) {
    if (typeof quantity !== "string" && typeof quantity !== "number") continue;
    amounts[name] = Number(parseMilli(String(quantity)) ?? 0n);
  }
  return amounts;
}

/** True for resources that Kubernetes counts in bytes. */
export function isBytes(resource: string): boolean {
  return resource === "memory" || resource.endsWith("storage") || resource.startsWith("hugepages-");
}

export function addResources(a: Resources, b: Resources): Resources {
  return combine(a, b, (x, y) => x + y);
}

export function subtractResources(a: Resources, b: Resources): Resources {
  return combine(a, b, (x, y) => x - y);
}

/** True if every amount of `wanted` is available. A resource that is not named is not available. */
export function fitsIn(wanted: Resources, free: Resources): boolean {
  return Object.entries(wanted).every(([name, amount]) => amount <= 0 || amount <= (free[name] ?? 0));
}

/**
 * The amounts that the scheduler reserves for a pod. The larger of: all containers and sidecars (init containers that
 * restart always); or one init container with the sidecars before it. Adds the overhead and one of the resource `pods`.
 * A limit counts if a request is missing. Source: Kubernetes `PodRequests`.
 */
export function podRequests(podSpec: JsonObject): Resources {
  let running: Resources = {};
  let starting: Resources = {};
  for (const container of arrayAt(podSpec, "initContainers")) {
    if (stringAt(container, "restartPolicy") === "Always") {
      running = addResources(running, containerRequests(container));
      starting = combine(starting, running, Math.max);
    } else {
      starting = combine(starting, addResources(running, containerRequests(container)), Math.max);
    }
  }
  for (const container of arrayAt(podSpec, "containers")) {
    running = addResources(running, containerRequests(container));
  }
  const total = addResources(combine(running, starting, Math.max), readResources(objectAt(podSpec, "overhead")));
  return { ...total, pods: 1000 };
}

function containerRequests(container: Json): Resources {
  const resources = objectAt(container, "resources");
  return { ...readResources(objectAt(resources, "limits")), ...readResources(objectAt(resources, "requests")) };
}

function combine(a: Resources, b: Resources, pick: (x: number, y: number) => number): Resources {
  const amounts: Record<string, number> = {};
  for (const name of new Set([...Object.keys(a), ...Object.keys(b)])) amounts[name] = pick(a[name] ?? 0, b[name] ?? 0);
  return amounts;
}
