import { arrayAt, isJsonObject, type Json, type JsonObject, objectAt, stringAt } from "../../runtime/json.ts";

/** A member of a pod, with its path from the template. */
export type PodPart = { readonly path: string; readonly value: JsonObject };
export type PodContainer = PodPart & { readonly name: string };

/** The lists of a pod spec that hold containers. */
export const CONTAINER_LISTS = ["initContainers", "containers", "ephemeralContainers"] as const;

/** All containers of a pod spec: init, ordinary and ephemeral ones. */
export function containersOf(spec: JsonObject): readonly PodContainer[] {
  return CONTAINER_LISTS.flatMap((list) =>
    partsAt({ path: "spec", value: spec }, list).map((part) => ({ ...part, name: stringAt(part.value, "name") ?? "" })),
  );
}

/** The security context of the pod, then that of each container. An absent one is an empty object. */
export function securityContextsOf(spec: JsonObject): readonly PodPart[] {
  return [{ path: "spec", value: spec }, ...containersOf(spec)].map((part) => partAt(part, "securityContext"));
}

/** The members of a container that are probes. */
export const PROBES = ["livenessProbe", "readinessProbe", "startupProbe"] as const;

export function volumesOf(spec: JsonObject): readonly PodPart[] {
  return partsAt({ path: "spec", value: spec }, "volumes");
}

/** A member of a part. An absent one is an empty object. */
export function partAt({ path, value }: PodPart, member: string): PodPart {
  return { path: `${path}.${member}`, value: objectAt(value, member) };
}

/** The objects in a list of a part. */
export function partsAt({ path, value }: PodPart, member: string): readonly PodPart[] {
  return arrayAt(value, member).flatMap((item, index) =>
    isJsonObject(item) ? [{ path: `${path}.${member}[${index}]`, value: item }] : [],
  );
}

/** True if a member has a value. Kubernetes reads null as absent. */
export function isSet(value: Json | undefined): value is Exclude<Json, null> {
  return value !== undefined && value !== null;
}

/** True for a set member that is neither false nor true. Only `false` is surely off. */
export function isOn(value: Json | undefined): boolean {
  return isSet(value) && value !== false;
}

/** The items of a list of texts. A value of another type counts as one item, so that it is judged too. */
export function textsAt(value: JsonObject, member: string): readonly string[] {
  const inner = value[member];
  if (!isSet(inner)) return [];
  return (Array.isArray(inner) ? (inner as readonly Json[]) : [inner]).map(textOf);
}

/** A short text of any JSON value. */
export function textOf(value: Json | undefined): string {
  return (typeof value === "string" ? value : (JSON.stringify(value) ?? "")).slice(0, SHOWN_MAX);
}

/** Longer texts are cut, because errors quote them. Nothing that Kubernetes accepts in these places is longer. */
const SHOWN_MAX = 4096;
