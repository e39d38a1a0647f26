import type { JsonObject } from "../../runtime/json.ts";
import { arrayAt, isJsonObject, objectAt, stringAt } from "../../runtime/json.ts";
import type { KubeObject } from "./kube-object.ts";
import { CRD_RESOURCE, RESOURCE_KINDS, type ResourceKind } from "./resource-kinds.ts";
import type { Store } from "./store.ts";

/** Every kind that a cluster serves: its own, and those whose definitions it holds. */
export function servedKinds(store: Store): readonly ResourceKind[] {
  const custom = [...store.objects(CRD_RESOURCE)].flatMap(definedKinds);
  return [...RESOURCE_KINDS.values(), ...custom];
}

/** Finds a kind by the parts of its path; undefined where nothing serves it. */
export function kindAt(store: Store, apiVersion: string, plural: string): ResourceKind | undefined {
  if (apiVersion === "v1") return RESOURCE_KINDS.get(plural);
  return servedKinds(store).find((kind) => kind.apiVersion === apiVersion && kind.plural === plural);
}

/** Whether a path lies within a group that the cluster serves. */
export function leadsToGroup(path: string, store: Store): boolean {
  if (path.startsWith("/api/v1/")) return true;
  return servedKinds(store).some(({ apiVersion }) => path.startsWith(`/apis/${apiVersion}/`));
}

/** What a new CustomResourceDefinition is served with: it is established at once. */
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

/** One kind for each served version; all versions of a definition share their objects. */
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
