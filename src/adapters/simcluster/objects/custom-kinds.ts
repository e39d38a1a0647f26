import type { JsonObject } from "../../../runtime/json.ts";
import { arrayAt, isJsonObject, objectAt, stringAt } from "../../../runtime/json.ts";
import type { KubeObject } from "./kube-object.ts";
import type { ObjectStore } from "./object-store.ts";
import { CRD_RESOURCE, RESOURCE_KINDS, type ResourceKind } from "./resource-kinds.ts";

/** Returns every kind that the cluster serves: the built-in ones, and those of its CustomResourceDefinitions. */
export function servedKinds(store: ObjectStore): readonly ResourceKind[] {
  const custom = [...store.objects(CRD_RESOURCE)].flatMap(definedKinds);
  return [...RESOURCE_KINDS.values(), ...custom];
}

/** Finds a kind by its API version and plural name. Undefined: the cluster does not serve it. */
export function kindAt(store: ObjectStore, apiVersion: string, plural: string): ResourceKind | undefined {
  if (apiVersion === "v1") return RESOURCE_KINDS.get(plural);
  return servedKinds(store).find((kind) => kind.apiVersion === apiVersion && kind.plural === plural);
}

/** True if a path is in an API group that the cluster serves. */
export function isInServedGroup(path: string, store: ObjectStore): boolean {
  if (path.startsWith("/api/v1/")) return true;
  return servedKinds(store).some(({ apiVersion }) => path.startsWith(`/apis/${apiVersion}/`));
}

/** Returns the status of a new CustomResourceDefinition: it is established at once. */
export function definitionStatus(body: { readonly [member: string]: unknown }, at: string): JsonObject {
  const spec = objectAt(body, "spec");
  const condition = (type: string, reason: string, message: string) => ({
    type,
    status: "True",
    reason,
    message,
    lastTransitionTime: at,
  });
  return {
    acceptedNames: objectAt(spec, "names"),
    conditions: [
      condition("NamesAccepted", "NoConflicts", "no conflicts found"),
      condition("Established", "InitialNamesAccepted", "the initial names have been accepted"),
    ],
    storedVersions: versionsOf(spec).flatMap((version) =>
      version["storage"] === true ? [stringAt(version, "name") ?? ""] : [],
    ),
  };
}

/** Returns a kind for each served version. All versions of a definition share their objects. */
function definedKinds(definition: KubeObject): readonly ResourceKind[] {
  const spec = objectAt(definition, "spec");
  const names = objectAt(spec, "names");
  const group = stringAt(spec, "group") ?? "";
  return versionsOf(spec)
    .filter((version) => version["served"] === true)
    .map((version) => ({
      resource: definition.metadata.name,
      plural: stringAt(names, "plural") ?? "",
      apiVersion: `${group}/${stringAt(version, "name") ?? ""}`,
      kind: stringAt(names, "kind") ?? "",
      namespaced: stringAt(spec, "scope") === "Namespaced",
      nameRule: "subdomain",
      shortNames: arrayAt(names, "shortNames").filter((name) => typeof name === "string"),
      hasStatus: objectAt(version, "subresources")["status"] !== undefined,
      returnsDeleted: false,
    }));
}

function versionsOf(spec: JsonObject): readonly JsonObject[] {
  return arrayAt(spec, "versions").filter(isJsonObject);
}
