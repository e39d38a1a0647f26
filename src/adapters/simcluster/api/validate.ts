/** Serves users who try manifests out: refuses the objects that a real API server refuses, in its words. */

import type { Json, JsonObject } from "../../../runtime/json.ts";
import { arrayAt, canonicalJson, isJsonObject, objectAt, stringAt } from "../../../runtime/json.ts";
import { without } from "../objects/kube-object.ts";
import type { ResourceKind } from "../objects/resource-kinds.ts";
import type { StatusCause } from "../objects/status-error.ts";
import { badRequest, CAUSE, invalid } from "../objects/status-error.ts";
import { labelCauses, nameCauses } from "./names.ts";
import { podCauses, podTypeProblem } from "./pod-causes.ts";

/**
 * Validates an object before it is stored, as kube-apiserver does: a pod that a real cluster would refuse must fail
 * here too. Throws a 422 that names every bad field.
 */
export function validateObject(kind: ResourceKind, name: string, object: JsonObject): void {
  const metadata = objectAt(object, "metadata");
  const isPod = kind.resource === "pods";
  const named = name === "" ? [CAUSE.required("metadata.name", "name or generateName is required")] : null;
  const causes: StatusCause[] = [
    ...(named ?? (isPod ? [] : nameCauses("metadata.name", name, kind.nameRule))),
    ...(isPod ? [] : labelCauses(metadata)),
    ...ownerCauses(metadata),
    ...(isPod && named === null ? podCauses(object) : []),
    ...(kind.resource === "services" ? serviceCauses(objectAt(object, "spec")) : []),
  ];
  if (causes.length > 0) throw invalid(kind.kind, name, causes);
}

function ownerCauses(metadata: JsonObject): readonly StatusCause[] {
  const owners = arrayAt(metadata, "ownerReferences");
  const causes = owners.flatMap((owner) =>
    ["apiVersion", "kind", "name", "uid"]
      .filter((member) => (stringAt(owner, member) ?? "") === "")
      .map((member) => CAUSE.invalid(`metadata.ownerReferences.${member}`, "", "must not be empty")),
  );
  const controllers = owners.filter((owner) => isJsonObject(owner) && owner["controller"] === true);
  if (controllers.length < 2) return causes;
  const message = "Only one reference can have Controller set to true";
  return [...causes, CAUSE.invalid("metadata.ownerReferences", owners, message)];
}

function serviceCauses(spec: JsonObject): readonly StatusCause[] {
  const ports = arrayAt(spec, "ports");
  const headless = stringAt(spec, "clusterIP") === "None" || stringAt(spec, "type") === "ExternalName";
  if (ports.length === 0) return headless ? [] : [CAUSE.required("spec.ports")];
  return ports.flatMap((port, index) => {
    const number = isJsonObject(port) ? port["port"] : undefined;
    const isValid = typeof number === "number" && Number.isInteger(number) && number > 0 && number < 65_536;
    const field = `spec.ports[${index}]`;
    const unnamed = ports.length > 1 && (stringAt(port, "name") ?? "") === "";
    return [
      ...(unnamed ? [CAUSE.required(`${field}.name`)] : []),
      ...(isValid ? [] : ["port", "targetPort"].map((member) => badPort(`${field}.${member}`, number))),
    ];
  });
}

function badPort(field: string, number: Json | undefined): StatusCause {
  return CAUSE.invalid(field, number ?? 0, "must be between 1 and 65535, inclusive");
}

/** Throws a 400 for a body that the typed decoder of `kind` would reject: wrong types and invalid quantities. */
export function checkShape(kind: string, body: JsonObject): void {
  for (const member of ["metadata", "spec", "status"]) expectShape(kind, body, [member], "object");
  for (const map of ["labels", "annotations"]) {
    expectShape(kind, body, ["metadata", map], "object");
    for (const value of Object.values(objectAt(objectAt(body, "metadata"), map))) {
      if (typeof value !== "string") throw undecodable(kind, value, `ObjectMeta.metadata.${map} of type string`);
    }
  }
  const problem = kind === "Pod" ? podTypeProblem(body) : null;
  if (problem !== null) throw badRequest(`Pod in version "v1" cannot be handled as a Pod: ${problem}`);
}

function expectShape(
  kind: string,
  body: JsonObject,
  path: readonly string[],
  shape: "object" | "array",
  field = `${kind}.${path.join(".")}`,
): void {
  let value: Json | undefined = body;
  for (const member of path) value = isJsonObject(value) ? value[member] : undefined;
  if (value === undefined || value === null) return;
  const isRight = shape === "array" ? Array.isArray(value) : isJsonObject(value);
  if (!isRight) throw undecodable(kind, value, field);
}

function undecodable(kind: string, value: Json | undefined, field: string): Error {
  const detail = `json: cannot unmarshal ${jsonType(value)} into Go struct field ${field}`;
  return badRequest(`${kind} in version "v1" cannot be handled as a ${kind}: ${detail}`);
}

function jsonType(value: Json | undefined): string {
  return Array.isArray(value) ? "array" : value === null ? "null" : typeof value === "boolean" ? "bool" : typeof value;
}

const POD_SPEC_FORBIDDEN =
  "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`," +
  "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations)," +
  "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";

/** Throws a 422 if an update changes fields of a pod's spec that cannot change. Scheduling gates can be removed. */
export function validatePodUpdate(name: string, before: JsonObject, after: JsonObject): void {
  if (canonicalJson(fixedPart(before)) === canonicalJson(fixedPart(after))) return;
  throw invalid("Pod", name, [CAUSE.forbidden("spec", POD_SPEC_FORBIDDEN)]);
}

function fixedPart(spec: JsonObject): JsonObject {
  const withoutImage = (container: Json) => (isJsonObject(container) ? { ...container, image: "" } : container);
  return {
    ...without(spec, "activeDeadlineSeconds", "tolerations", "schedulingGates"),
    containers: arrayAt(spec, "containers").map(withoutImage),
    initContainers: arrayAt(spec, "initContainers").map(withoutImage),
  };
}
