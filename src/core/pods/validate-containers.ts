import { arrayAt, isJsonObject, type Json, type JsonObject, objectAt, stringAt } from "../../runtime/json.ts";
import type { FieldError } from "../job/sent.ts";
import { parseMilli } from "./quantity.ts";

/** Longer ones are no amounts, and only cost time to read. */
const QUANTITY_LENGTH_MAX = 40;
const DNS_LABEL = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/;

/** What is wrong with a pod spec's containers: none at all, names, images, resources. Paths start at the template. */
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
    return [{ path: `${path}.name`, message: "must be lower-case letters, digits and dashes, at most 63" }];
  }
  if (seen.has(name)) return [{ path: `${path}.name`, message: `another container is named ${name}` }];
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

/** An extended resource is never overcommitted: its request is its limit (Kubernetes). */
function checkRequest(
  name: string,
  { requests, limits, path }: { readonly requests: JsonObject; readonly limits: JsonObject; readonly path: string },
): readonly FieldError[] {
  const request = quantityOf(requests[name]);
  const limit = quantityOf(limits[name]);
  const extended = isExtended(name);
  if (request === null) return [];
  const at = memberPath(path, name);
  if (limit === null) return extended ? [{ path: at, message: "needs a limit of the same amount" }] : [];
  if (request > limit) return [{ path: at, message: "is above the limit" }];
  return extended && request !== limit ? [{ path: at, message: "must be the same as the limit" }] : [];
}

/** A device that some plugin hands out, by a name with a domain. */
function isExtended(name: string): boolean {
  return name.includes("/") && !name.startsWith("kubernetes.io/");
}

function checkQuantities(list: JsonObject, path: string): readonly FieldError[] {
  return Object.entries(list).flatMap(([name, value]) => {
    const quantity = quantityOf(value);
    if (quantity === null) return [{ path: memberPath(path, name), message: "is no quantity, like 500m, 2 or 8Gi" }];
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
