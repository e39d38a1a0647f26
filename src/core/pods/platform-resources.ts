import { type Json, type JsonObject, objectAt } from "../../runtime/json.ts";
import type { PlatformResources, PodConfig, ResourceList } from "./pod-config.ts";
import { parseQuantity } from "./quantity.ts";

/** What a container asks for of one resource, and may use of it; `0` is unset. */
export type RequestAndLimit = { readonly request: string; readonly limit: string };

/** Whether a container that does not say gets a default (`assign`), or is only held to the platform's limits (`hold`). */
export type CustomizationMode = "assign" | "hold";

export type ListOutcome =
  | { readonly kind: "list"; readonly list: ResourceList }
  | { readonly kind: "refused"; readonly errors: readonly { readonly name: string; readonly message: string }[] };

/** The names that platforms use for resources, as Kubernetes knows them; GPUs by what the platform asks for them. */
const RESOURCE_NAMES: Readonly<Record<string, string>> = {
  CPU: "cpu",
  MEMORY: "memory",
  EPHEMERAL_STORAGE: "ephemeral-storage",
};
const GPU_ALIASES = ["gpu", "GPU"];
const CPU = "cpu";
const MEMORY = "memory";
const EPHEMERAL = "ephemeral-storage";
/** Volumes have it, containers have not. */
const NOT_OF_CONTAINERS = "storage";
/** What platforms name and Kubernetes gives to no container. */
const NAMELESS = ["STORAGE", "UNKNOWN"];

/** A ResourceList out of entries in the platform's names; a name may come again, the last one counts. Amounts of zero, and of what no container can have, are left out. */
export function toResourceList(
  entries: readonly { readonly name: string; readonly value: string }[],
  gpuResourceName: string,
): ListOutcome {
  const errors: { name: string; message: string }[] = [];
  const list: Record<string, string> = {};
  for (const { name, value } of entries) {
    const quantity = parseQuantity(value);
    if (quantity === null) errors.push({ name, message: `is "${value}": no quantity, like 500m, 2 or 8Gi` });
    else if (quantity.nano < 0n) errors.push({ name, message: `is ${value}: must not be negative` });
    else if (quantity.nano > 0n && !NAMELESS.includes(wordOf(name))) list[resourceName(name, gpuResourceName)] = value;
  }
  return errors.length > 0 ? { kind: "refused", errors } : { kind: "list", list };
}

function resourceName(name: string, gpuResourceName: string): string {
  if (GPU_ALIASES.includes(name)) return gpuResourceName;
  return RESOURCE_NAMES[wordOf(name)] ?? name;
}

/** `EPHEMERAL_STORAGE`, however it is written. */
function wordOf(name: string): string {
  return name
    .replace(/([a-z])([A-Z])/g, "$1_$2")
    .replace("-", "_")
    .toUpperCase();
}

/** Resources with those of `over` on top, resource by resource. */
export function mergeResources(base: JsonObject, over: JsonObject): JsonObject {
  const merged: Record<string, Json | undefined> = { ...base, ...over };
  for (const member of ["limits", "requests"]) {
    const list = { ...objectAt(base, member), ...objectAt(over, member) };
    if (Object.keys(list).length > 0) merged[member] = list;
  }
  return merged;
}

/**
 * A request and a limit as a platform gives them: each stands in for the other, the platform's default for both, and neither is above the
 * platform's limit, nor the request above the limit. Source: Flyte's `AdjustOrDefaultResource`.
 */
export function adjustOrDefault(asked: RequestAndLimit, platform: RequestAndLimit): RequestAndLimit {
  const request = firstSet(asked.request, asked.limit, platform.request);
  return holdInRange({ request, limit: firstSet(asked.limit, request) }, platform.limit);
}

/** The same without defaults: amounts only go down. Source: Flyte's `ensureResourceRange`. */
export function holdInRange({ request, limit }: RequestAndLimit, platformLimit: string): RequestAndLimit {
  const held = atMost(limit, platformLimit);
  return { request: atMost(atMost(request, platformLimit), held), limit: held };
}

function firstSet(...amounts: readonly string[]): string {
  return amounts.find((amount) => !isZero(amount)) ?? "0";
}

function atMost(amount: string, limit: string): string {
  return isZero(amount) || isZero(limit) || nanoOf(amount) <= nanoOf(limit) ? amount : limit;
}

function isZero(amount: string): boolean {
  return nanoOf(amount) === 0n;
}

function nanoOf(amount: string): bigint {
  return parseQuantity(amount)?.nano ?? 0n;
}

/**
 * A container's resources as the platform gives them. CPU and memory are always looked at, other resources where the container names them.
 * `gpu` becomes what the platform asks for GPUs by, and `storage`, which containers have not, goes. Source: Flyte's `ApplyResourceOverrides`.
 */
export function customizeResources(
  resources: JsonObject,
  platform: PlatformResources,
  of: {
    readonly mode: CustomizationMode;
    readonly config: Pick<PodConfig, "gpuResourceName" | "defaultCPURequest" | "defaultMemoryRequest">;
  },
): JsonObject {
  const { mode, config } = of;
  const lists = {
    requests: ofContainers(objectAt(resources, "requests"), config.gpuResourceName),
    limits: ofContainers(objectAt(resources, "limits"), config.gpuResourceName),
  };
  const defaults: ResourceList = {
    [CPU]: config.defaultCPURequest,
    [MEMORY]: config.defaultMemoryRequest,
    ...platform.defaults,
  };
  const assigned = [CPU, MEMORY, EPHEMERAL, config.gpuResourceName];
  const named = new Set([CPU, MEMORY, ...Object.keys(lists.requests), ...Object.keys(lists.limits)]);
  for (const name of named) {
    const asked = { request: lists.requests[name] ?? "0", limit: lists.limits[name] ?? "0" };
    const own = { request: defaults[name] ?? "0", limit: platform.limits[name] ?? "0" };
    const given =
      mode === "assign" && assigned.includes(name) ? adjustOrDefault(asked, own) : holdInRange(asked, own.limit);
    if (!isZero(given.request)) lists.requests[name] = given.request;
    if (!isZero(given.limit)) lists.limits[name] = given.limit;
  }
  const { requests: _requests, limits: _limits, ...others } = resources;
  return { ...others, ...nonEmpty("requests", lists.requests), ...nonEmpty("limits", lists.limits) };
}

function ofContainers(list: JsonObject, gpuResourceName: string): Record<string, string> {
  const texts: Record<string, string> = {};
  for (const [name, amount] of Object.entries(list)) {
    if (typeof amount !== "string" && typeof amount !== "number") continue;
    if (name !== NOT_OF_CONTAINERS && !GPU_ALIASES.includes(name)) texts[name] = String(amount);
  }
  for (const alias of GPU_ALIASES) {
    const amount = list[alias];
    if (typeof amount === "string" || typeof amount === "number") texts[gpuResourceName] = String(amount);
  }
  return texts;
}

function nonEmpty(member: string, list: Readonly<Record<string, string>>): JsonObject {
  return Object.keys(list).length === 0 ? {} : { [member]: list };
}
