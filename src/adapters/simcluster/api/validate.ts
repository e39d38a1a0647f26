/** Serves users who try manifests out: refuses the objects that a real API server refuses, in its words. */

import { parseMilli } from "../../../core/pods/quantity.ts";
import type { Json, JsonObject } from "../../../runtime/json.ts";
import { arrayAt, canonicalJson, isJsonObject, objectAt, stringAt } from "../../../runtime/json.ts";
import { append } from "../../../runtime/lists.ts";
import { without } from "../objects/kube-object.ts";
import { labelCauses, nameCauses } from "./names.ts";
import type { ResourceKind } from "./resource-kinds.ts";
import type { StatusCause } from "./status-error.ts";
import { badRequest, CAUSE, invalid } from "./status-error.ts";

/**
 * Validates an object before it is stored, as kube-apiserver does: a pod that a real cluster would refuse must fail
 * here too. Throws a 422 that names every bad field.
 */
export function validateObject(kind: ResourceKind, name: string, object: JsonObject): void {
  const metadata = objectAt(object, "metadata");
  const causes: StatusCause[] = [
    ...(name === ""
      ? [CAUSE.required("metadata.name", "name or generateName is required")]
      : nameCauses("metadata.name", name, kind.nameRule)),
    ...labelCauses(metadata),
    ...ownerCauses(metadata),
    ...(kind.resource === "pods" ? podCauses(objectAt(object, "spec")) : []),
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

const RESTART_POLICIES = ["Always", "OnFailure", "Never"];

function podCauses(spec: JsonObject): readonly StatusCause[] {
  const containers = arrayAt(spec, "containers");
  const volumes = new Set(arrayAt(spec, "volumes").map((volume) => stringAt(volume, "name")));
  const seen = new Set<string>();
  const causes: StatusCause[] = containers.length === 0 ? [CAUSE.required("spec.containers")] : [];
  for (const list of ["initContainers", "containers"]) {
    for (const [index, container] of arrayAt(spec, list).entries()) {
      append(causes, containerCauses(`spec.${list}[${index}]`, container, { seen, volumes }));
    }
  }
  const policy = stringAt(spec, "restartPolicy") ?? "";
  if (!RESTART_POLICIES.includes(policy))
    causes.push(CAUSE.unsupported("spec.restartPolicy", policy, RESTART_POLICIES));
  return causes;
}

type ContainerScope = { readonly seen: Set<string>; readonly volumes: ReadonlySet<string | undefined> };

function containerCauses(field: string, container: Json, { seen, volumes }: ContainerScope): readonly StatusCause[] {
  const name = stringAt(container, "name") ?? "";
  const causes: StatusCause[] =
    name === "" ? [CAUSE.required(`${field}.name`)] : [...nameCauses(`${field}.name`, name, "label")];
  if ((stringAt(container, "image") ?? "") === "") causes.push(CAUSE.required(`${field}.image`));
  for (const [index, mount] of arrayAt(container, "volumeMounts").entries()) {
    const volume = stringAt(mount, "name") ?? "";
    if (!volumes.has(volume)) causes.push(CAUSE.notFound(`${field}.volumeMounts[${index}].name`, volume));
  }
  append(causes, resourceCauses(`${field}.resources`, objectAt(container, "resources")));
  if (name !== "" && seen.has(name)) causes.push(CAUSE.duplicate(`${field}.name`, name));
  seen.add(name);
  return causes;
}

/** Source: Kubernetes' `ValidateResourceRequirements`. */
function resourceCauses(field: string, resources: JsonObject): readonly StatusCause[] {
  const causes: StatusCause[] = [];
  const limits = objectAt(resources, "limits");
  for (const [name, request] of Object.entries(objectAt(resources, "requests"))) {
    append(causes, (isExtended(name) ? extendedCauses : ordinaryCauses)(field, name, request, limits[name]));
  }
  return causes;
}

type Quantity = Json | undefined;

function ordinaryCauses(field: string, name: string, request: Quantity, limit: Quantity): readonly StatusCause[] {
  if (limit === undefined || milli(request) <= milli(limit)) return [];
  const detail = `must be less than or equal to ${name} limit of ${String(limit)}`;
  return [CAUSE.invalid(`${field}.requests`, request, detail)];
}

function extendedCauses(field: string, name: string, request: Quantity, limit: Quantity): readonly StatusCause[] {
  const causes: StatusCause[] = [];
  if (milli(request) % 1000n !== 0n) {
    causes.push(CAUSE.invalid(`${field}.requests[${name}]`, request, "must be an integer"));
  }
  if (limit === undefined) {
    causes.push(CAUSE.required(`${field}.limits`, "Limit must be set for non overcommitable resources"));
  } else if (milli(request) !== milli(limit)) {
    causes.push(CAUSE.invalid(`${field}.requests`, request, `must be equal to ${name} limit of ${String(limit)}`));
  }
  return causes;
}

/** True for resources of devices, such as `nvidia.com/gpu`, which cannot be overcommitted. */
function isExtended(name: string): boolean {
  return name.includes("/") && !name.includes("kubernetes.io/") && !name.startsWith("requests.");
}

function milli(quantity: Json | undefined): bigint {
  return parseMilli(String(quantity)) ?? 0n;
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
  if (kind === "Pod") checkPodShape(body);
}

const POD_LISTS: Readonly<Record<string, string>> = {
  containers: "PodSpec.spec.containers of type []v1.Container",
  initContainers: "PodSpec.spec.initContainers of type []v1.Container",
  volumes: "PodSpec.spec.volumes of type []v1.Volume",
  tolerations: "PodSpec.spec.tolerations of type []v1.Toleration",
};

function checkPodShape(body: JsonObject): void {
  for (const list of Object.keys(POD_LISTS)) {
    expectShape("Pod", body, ["spec", list], "array", POD_LISTS[list]);
  }
  const spec = objectAt(body, "spec");
  for (const container of [...arrayAt(spec, "initContainers"), ...arrayAt(spec, "containers")]) {
    if (!isJsonObject(container)) throw undecodable("Pod", container, "PodSpec.spec.containers of type v1.Container");
    const resources = objectAt(container, "resources");
    const quantities = [
      ...Object.values(objectAt(resources, "requests")),
      ...Object.values(objectAt(resources, "limits")),
    ];
    if (quantities.some((quantity) => parseMilli(String(quantity)) === null)) {
      const detail = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";
      throw badRequest(`Pod in version "v1" cannot be handled as a Pod: ${detail}`);
    }
  }
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
