/**
 * Gives containers the default requests and limits of the platform, and keeps them within its limits. It serves users
 * who name no resources, and operators who cap them.
 */
import { type Json, type JsonObject, objectAt } from "../../runtime/json.ts";
import type { PlatformResources, PodConfig, ResourceList } from "./pod-config.ts";
import { parseQuantity } from "./quantity.ts";

/** The request and limit of one resource. `0`: not set. */
type RequestAndLimit = { readonly request: string; readonly limit: string };

/**
 * `assign`: a container without a value gets the default. `hold`: values are only kept within the platform's limits.
 */
type CustomizationMode = "assign" | "hold";

type ListOutcome =
  | { readonly kind: "list"; readonly list: ResourceList }
  | { readonly kind: "refused"; readonly errors: readonly { readonly name: string; readonly message: string }[] };

/** Platform names of resources, with the names in Kubernetes. GPUs get the platform's GPU resource name. */
const RESOURCE_NAMES: Readonly<Record<string, string>> = {
  CPU: "cpu",
  MEMORY: "memory",
  EPHEMERAL_STORAGE: "ephemeral-storage",
};
const GPU_ALIASES = ["gpu", "GPU"];
const CPU = "cpu";
const MEMORY = "memory";
const EPHEMERAL = "ephemeral-storage";
/** A resource of volumes, which containers do not have. */
const NOT_OF_CONTAINERS = "storage";
/** Platform names of resources that no container can have. */
const NAMELESS = ["STORAGE", "UNKNOWN"];

/**
 * Makes a ResourceList from entries with platform names. The last entry of a name counts. Omits zero amounts and
 * resources that no container can have.
 */
export function toResourceList(
  entries: readonly { readonly name: string; readonly value: string }[],
  gpuResourceName: string,
): ListOutcome {
  const errors: { name: string; message: string }[] = [];
  const list: Record<string, string> = {};
  for (const { name, value } of entries) {
    const quantity = parseQuantity(value);
    if (quantity === null) errors.push({ name, message: `is "${value}": must be a quantity such as 500m, 2 or 8Gi` });
    else if (quantity.nano < 0n) errors.push({ name, message: `is ${value}: must not be negative` });
    else if (quantity.nano > 0n && !NAMELESS.includes(wordOf(name))) list[resourceName(name, gpuResourceName)] = value;
  }
  return errors.length > 0 ? { kind: "refused", errors } : { kind: "list", list };
}

function resourceName(name: string, gpuResourceName: string): string {
  if (GPU_ALIASES.includes(name)) return gpuResourceName;
  return RESOURCE_NAMES[wordOf(name)] ?? name;
}

/**
 * The resource that a container gets for one that it names: the GPUs of the platform for `gpu`. Null: it gets none,
 * because containers do not have it.
 */
export function resourceOfContainer(name: string, gpuResourceName: string): string | null {
  if (name === NOT_OF_CONTAINERS) return null;
  return GPU_ALIASES.includes(name) ? gpuResourceName : name;
}

/** Recognizes `EPHEMERAL_STORAGE` in any spelling. */
function wordOf(name: string): string {
  return name
    .replace(/([a-z])([A-Z])/g, "$1_$2")
    .replace("-", "_")
    .toUpperCase();
}

/** Overrides resources, each by name. */
export function mergeResources(base: JsonObject, over: JsonObject): JsonObject {
  const merged: Record<string, Json | undefined> = { ...base, ...over };
  for (const member of ["limits", "requests"]) {
    const list = { ...objectAt(base, member), ...objectAt(over, member) };
    if (Object.keys(list).length > 0) merged[member] = list;
  }
  return merged;
}

/**
 * Completes a request and limit for a platform. A missing one is taken from the other, and both from the default.
 * Neither may exceed the platform's limit, and the request not the limit. Source: Flyte's `AdjustOrDefaultResource`.
 */
export function adjustOrDefault(requested: RequestAndLimit, platform: RequestAndLimit): RequestAndLimit {
  const request = firstSet(requested.request, requested.limit, platform.request);
  return holdInRange({ request, limit: firstSet(requested.limit, request) }, platform.limit);
}

/** Only lowers amounts, without defaults. Source: Flyte's `ensureResourceRange`. */
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

/** A quantity in thousand-millionths. */
export function nanoOf(amount: string): bigint {
  return parseQuantity(amount)?.nano ?? 0n;
}

/**
 * Adapts the resources of a container to the platform. CPU and memory are always set; other resources only if the
 * container names them. `gpu` becomes the platform's GPU resource, and `storage` is dropped, because containers do not
 * have it. Source: Flyte's `ApplyResourceOverrides`.
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
    const requested = { request: lists.requests[name] ?? "0", limit: lists.limits[name] ?? "0" };
    const own = { request: defaults[name] ?? "0", limit: platform.limits[name] ?? "0" };
    const given =
      mode === "assign" && assigned.includes(name)
        ? adjustOrDefault(requested, own)
        : holdInRange(requested, own.limit);
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
