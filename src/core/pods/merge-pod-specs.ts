import { arrayAt, canonicalJson, isJsonObject, type Json, type JsonObject, stringAt } from "../../runtime/json.ts";
import { requireBoth } from "./build-affinity.ts";
import { mergeResources } from "./platform-resources.ts";

/** The containers of a base that others are built on, by list: every one, and the primary one. They are not run. */
const TEMPLATES = {
  containers: { every: "default", primary: "primary" },
  initContainers: { every: "default-init", primary: "primary-init" },
} as const;

/** What tells the items of a list apart where Kubernetes takes none twice. */
const KEYS: Readonly<Record<string, string>> = {
  volumes: "name",
  initContainers: "name",
  imagePullSecrets: "name",
  volumeMounts: "mountPath",
  volumeDevices: "devicePath",
  ports: "name",
};
/** What says how to probe or to hook: a probe has one of them. */
const HANDLERS = ["exec", "httpGet", "tcpSocket", "grpc", "sleep"];

/** The container whose end is the pod's, and the init container that fetches its inputs; empty: none. */
export type PrimaryNames = { readonly container: string; readonly initContainer: string };

/**
 * A pod spec built on a base. What the pod says wins; lists are the base's, then the pod's, and where both name an item the pod's counts;
 * of the required node terms both are met. The base's containers are not run: `default` is what every container of the pod is built on, then
 * `primary` what the primary one is. Its init containers are run, built like the pod's on `default-init` and `primary-init`, which are not.
 * Source: Flyte's `mergePodSpecs`.
 */
export function mergePodSpecs(base: JsonObject, podSpec: JsonObject, primary: PrimaryNames): JsonObject {
  const { containers: _templates, initContainers: _init, ...rest } = base;
  const built = (list: readonly Json[]) =>
    list.map((one) => builtOn(base, "initContainers", one, primary.initContainer));
  const names: readonly (string | undefined)[] = Object.values(TEMPLATES.initContainers);
  const own = arrayAt(base, "initContainers").filter((one) => !names.includes(stringAt(one, "name")));
  const init = mergeLists("initContainers", built(own), built(arrayAt(podSpec, "initContainers")));
  const containers = arrayAt(podSpec, "containers").map((one) => builtOn(base, "containers", one, primary.container));
  return { ...mergeObjects(rest, podSpec), ...(init.length === 0 ? {} : { initContainers: init }), containers };
}

function builtOn(base: JsonObject, list: keyof typeof TEMPLATES, container: Json, primary: string): Json {
  if (!isJsonObject(container)) return container;
  const { every, primary: ofPrimary } = TEMPLATES[list];
  const template = (name: string) => arrayAt(base, list).find((one) => stringAt(one, "name") === name);
  const isPrimary = stringAt(container, "name") === primary;
  const bases = [template(every), isPrimary ? template(ofPrimary) : undefined].filter(isJsonObject);
  return [...bases, container].reduce(mergeObjects);
}

/** The metadata of a pod built on a base: labels and annotations of both, the pod's where both have one. */
export function mergeMetadata(base: JsonObject, metadata: JsonObject): JsonObject {
  return mergeObjects(base, metadata);
}

function mergeObjects(base: JsonObject, over: JsonObject): JsonObject {
  const handled = HANDLERS.some((handler) => isJsonObject(over[handler]));
  const merged: Record<string, Json | undefined> = handled ? without(base, HANDLERS) : { ...base };
  for (const [member, value] of Object.entries(over)) merged[member] = mergeMember(member, merged[member], value);
  return merged;
}

function mergeMember(member: string, base: Json | undefined, over: Json | undefined): Json | undefined {
  if (isEmpty(over)) return base ?? over;
  if (isEmpty(base)) return over;
  if (Array.isArray(base) && Array.isArray(over)) return mergeLists(member, base, over);
  if (!isJsonObject(base) || !isJsonObject(over)) return over;
  if (member === "resources") return mergeResources(base, over);
  const both = mergeObjects(base, over);
  return member === "requiredDuringSchedulingIgnoredDuringExecution"
    ? { ...both, nodeSelectorTerms: requireBoth(base, over) }
    : both;
}

/** A list that begins with the base's already stays, so that building on a base twice is as building on it once. */
function mergeLists(member: string, base: readonly Json[], over: readonly Json[]): readonly Json[] {
  if (canonicalJson(over.slice(0, base.length)) === canonicalJson(base)) return over;
  const key = KEYS[member];
  if (key === undefined) return [...base, ...over];
  const named = new Set(over.map((one) => stringAt(one, key) ?? ""));
  named.delete("");
  const kept = base.filter((one) => !named.has(stringAt(one, key) ?? ""));
  return [...kept, ...over];
}

function isEmpty(value: Json | undefined): boolean {
  return value === undefined || value === null || value === "" || (Array.isArray(value) && value.length === 0);
}

function without(object: JsonObject, members: readonly string[]): Record<string, Json | undefined> {
  return Object.fromEntries(Object.entries(object).filter(([member]) => !members.includes(member)));
}
