import { arrayAt, isJsonObject, type Json, type JsonObject, objectAt, stringAt } from "../../runtime/json.ts";
import type { FieldError } from "../job/sent.ts";
import { parseMilli } from "./quantity.ts";

/** Longer texts are refused without parsing them. */
const QUANTITY_LENGTH_MAX = 40;
const DNS_LABEL = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/;

/** Errors in the containers of a pod spec: their number, names, images and resources. Paths start at the template. */
export function checkContainers(spec: JsonObject): readonly FieldError[] {
  const containers = arrayAt(spec, "containers");
  const none: FieldError[] =
    containers.length === 0 ? [{ path: "spec.containers", message: "must have at least one container" }] : [];
  const seen = new Set<string>();
  const lists = ["containers", "initContainers"].flatMap((list) =>
    arrayAt(spec, list).flatMap((container, index) => checkContainer(container, `spec.${list}[${index}]`, seen)),
  );
  return [...none, ...lists];
}

function checkContainer(container: Json, path: string, seen: Set<string>): readonly FieldError[] {
  if (!isJsonObject(container)) return [];
  const image = stringAt(container, "image") ?? "";
  const images: FieldError[] = image.trim() === "" ? [{ path: `${path}.image`, message: "is required" }] : [];
  return [...checkName(container, path, seen), ...images, ...checkResources(container, `${path}.resources`)];
}

function checkName(container: JsonObject, path: string, seen: Set<string>): readonly FieldError[] {
  const name = stringAt(container, "name") ?? "";
  if (name === "") return [{ path: `${path}.name`, message: "is required" }];
  if (!DNS_LABEL.test(name)) {
    return [
      {
        path: `${path}.name`,
        message: "must be at most 63 lower-case letters, digits and dashes, without a dash at either end",
      },
    ];
  }
  if (seen.has(name)) return [{ path: `${path}.name`, message: `must be unique: another container is named ${name}` }];
  seen.add(name);
  return [];
}

function checkResources(container: JsonObject, path: string): readonly FieldError[] {
  const resources = objectAt(container, "resources");
  const limits = objectAt(resources, "limits");
  const requests = objectAt(resources, "requests");
  return [
    ...checkQuantities(limits, `${path}.limits`),
    ...checkQuantities(requests, `${path}.requests`),
    ...Object.keys(requests).flatMap((name) => checkRequest(name, { requests, limits, path: `${path}.requests` })),
  ];
}

/** Kubernetes never overcommits an extended resource: its request must equal its limit. */
function checkRequest(
  name: string,
  { requests, limits, path }: { readonly requests: JsonObject; readonly limits: JsonObject; readonly path: string },
): readonly FieldError[] {
  const request = quantityOf(requests[name]);
  const limit = quantityOf(limits[name]);
  const extended = isExtended(name);
  if (request === null) return [];
  const at = memberPath(path, name);
  if (limit === null) return extended ? [{ path: at, message: "must have a limit of the same amount" }] : [];
  if (request > limit) return [{ path: at, message: "must be at most the limit" }];
  return extended && request !== limit ? [{ path: at, message: "must be equal to the limit" }] : [];
}

/** True for a resource of a device plugin: its name has a domain. */
function isExtended(name: string): boolean {
  return name.includes("/") && !name.startsWith("kubernetes.io/");
}

function checkQuantities(list: JsonObject, path: string): readonly FieldError[] {
  return Object.entries(list).flatMap(([name, value]) => {
    const quantity = quantityOf(value);
    if (quantity === null)
      return [{ path: memberPath(path, name), message: "must be a quantity such as 500m, 2 or 8Gi" }];
    if (quantity < 0n) return [{ path: memberPath(path, name), message: "must not be negative" }];
    const isPart = isExtended(name) && quantity % 1000n !== 0n;
    return isPart ? [{ path: memberPath(path, name), message: "must be a whole number" }] : [];
  });
}

function quantityOf(value: Json | undefined): bigint | null {
  const text = typeof value === "string" || typeof value === "number" ? String(value) : "";
  return text.length <= QUANTITY_LENGTH_MAX ? parseMilli(text) : null;
}

/** `limits.cpu`, but `limits["nvidia.com/gpu"]`. */
function memberPath(path: string, name: string): string {
  return /^[A-Za-z][A-Za-z0-9-]*$/.test(name) ? `${path}.${name}` : `${path}[${JSON.stringify(name)}]`;
}

/** The resources that a container may request: those of Kubernetes, and others whose name has a domain. */
function isOfContainers(name: string): boolean {
  if (["cpu", "memory", "ephemeral-storage"].includes(name)) return true;
  if (/^hugepages-.+$/.test(name)) return true;
  return /^[^/]+\/[^/]+$/.test(name) && !/^(kubernetes\.io\/|requests\.)/.test(name);
}

/**
 * Finds names of resources that no container can have. Call it on a shaped template: a platform may replace some names
 * that Kubernetes does not know, such as `gpu`.
 */
export function checkResourceNames(podSpec: JsonObject): readonly FieldError[] {
  return (["containers", "initContainers"] as const).flatMap((list) =>
    arrayAt(podSpec, list).flatMap((container, index) =>
      (["limits", "requests"] as const).flatMap((member) =>
        Object.keys(objectAt(objectAt(container, "resources"), member))
          .filter((name) => !isOfContainers(name))
          .map((name) => ({
            path: `spec.${list}[${index}].resources.${member}[${JSON.stringify(name.slice(0, 80))}]`,
            message:
              "is not a resource of containers: must be cpu, memory, ephemeral-storage, hugepages-SIZE, " +
              "or a name with a domain such as nvidia.com/gpu",
          })),
      ),
    ),
  );
}
