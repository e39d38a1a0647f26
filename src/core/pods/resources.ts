import type { Json, JsonObject } from "../../runtime/json.ts";
import { arrayAt, objectAt, stringAt } from "../../runtime/json.ts";
import { parseMilli } from "./quantity.ts";

/**
 * Amounts by resource name, in thousandths of the resource's unit. They are exact below 2^53. Above, whole amounts are
 * near enough to find the number of units again, up to 2^53 units.
 */
export type Resources = Readonly<Record<string, number>>;

/** Reads a ResourceList. A text that is not a quantity counts as 0. */
export function readResources(list: JsonObject): Resources {
  const amounts: Record<string, number> = {};
  for (const name in list) {
    const quantity = list[name];
    if (typeof quantity !== "string" && typeof quantity !== "number") continue;
    amounts[name] = Number(parseMilli(String(quantity)) ?? 0n);
  }
  return amounts;
}

/** The exact thousandths of an amount. One of more than 2^53 is whole, and its number was rounded. */
export function exactMilli(milli: number): bigint {
  return Number.isSafeInteger(milli) ? BigInt(milli) : BigInt(Math.round(milli / 1000)) * 1000n;
}

/** True for resources that Kubernetes counts in bytes. */
export function isBytes(resource: string): boolean {
  return resource === "memory" || resource.endsWith("storage") || resource.startsWith(HUGE_PAGES);
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
 * restart always); or one init container with the sidecars before it. Requests of the pod itself take the place of
 * those of its containers. Adds the overhead and one of the resource `pods`. A limit counts if a request is missing.
 * Sources: Kubernetes `PodRequests`, `defaultPodRequests`.
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
  const own = withPodLevel(combine(running, starting, Math.max), objectAt(podSpec, "resources"));
  return { ...addResources(own, readResources(objectAt(podSpec, "overhead"))), pods: 1000 };
}

/** A limit of the pod counts if neither it nor a container requests the resource; of huge pages, if it does not. */
function withPodLevel(ofContainers: Resources, resources: JsonObject): Resources {
  const limits = Object.entries(readResources(objectAt(resources, "limits")));
  const counted = limits.filter(([name]) => name.startsWith(HUGE_PAGES) || !(name in ofContainers));
  const requests = Object.entries(readResources(objectAt(resources, "requests")));
  return { ...ofContainers, ...Object.fromEntries([...counted, ...requests].filter(([name]) => isOfPods(name))) };
}

const HUGE_PAGES = "hugepages-";

/** The resources that a pod itself can request. Kubernetes ignores others. */
function isOfPods(name: string): boolean {
  return name === "cpu" || name === "memory" || name.startsWith(HUGE_PAGES);
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
