import { arrayAt, canonicalJson, isJsonObject, type Json, type JsonObject, stringAt } from "../../runtime/json.ts";
import { requireBoth } from "./build-affinity.ts";
import { mergeResources } from "./platform-resources.ts";

/**
 * The names of containers of a base that are only templates for other containers, by list: one for every container,
 * one for the primary container.
 */
const TEMPLATES = {
  containers: { every: "default", primary: "primary" },
  initContainers: { every: "default-init", primary: "primary-init" },
} as const;

/** The member that identifies the items of a list in which Kubernetes allows no duplicates. */
const KEYS: Readonly<Record<string, string>> = {
  volumes: "name",
  initContainers: "name",
  imagePullSecrets: "name",
  volumeMounts: "mountPath",
  volumeDevices: "devicePath",
  ports: "name",
};
/** The members that select the way of a probe or hook. Only one of them may be set. */
const HANDLERS = ["exec", "httpGet", "tcpSocket", "grpc", "sleep"];

/** The primary container, and the init container that fetches its inputs. Empty: none. */
type PrimaryNames = { readonly container: string; readonly initContainer: string };

/**
 * Builds a pod spec on a base. Scalars of the pod override the base. Lists hold the items of the base, then those of
 * the pod; for items of the same name, the pod's item replaces the base's. Required node terms of both must be met. The
 * base's container
 * `default` is the template of every container, then `primary` the template of the primary one; neither is run.
 * `default-init` and `primary-init` are templates in the same way, and all other init containers of the base are run.
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

/** The labels and annotations of the base and the pod. The pod's override the base's. */
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

/** Leaves a list that already begins with the base's items, so that building on the same base twice changes nothing. */
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
