import { arrayAt, isJsonObject, type Json, type JsonObject, objectAt, stringAt } from "../../runtime/json.ts";
import { compareRoles } from "../job/roles.ts";
import { formatMilli } from "./quantity.ts";
import { addResources, type Resources, readResources } from "./resources.ts";

export type RoleOfGang = { readonly role: string; readonly replicas: number; readonly template: JsonObject };

/**
 * Sums the requests of the first `minMember` pods of a gang, as Kubernetes quantities. The order is by the value of the
 * template's priority class, higher first, if it is known; then by role: chief, master, launcher, evaluator, ps,
 * worker; then by name. Limits count for a container without requests. Source: Kubeflow's `CalcPGMinResources`, whose
 * order within a priority is random.
 */
export function minResources(
  minMember: number,
  roles: readonly RoleOfGang[],
  classValues: Readonly<Record<string, number>> = {},
): Readonly<Record<string, string>> {
  const priority = ({ template }: RoleOfGang) =>
    classValues[stringAt(objectAt(template, "spec"), "priorityClassName") ?? ""] ?? 0;
  const sorted = roles.toSorted((a, b) => priority(b) - priority(a) || compareRoles(a.role, b.role));
  let left = minMember;
  let total: Resources = {};
  for (const { replicas, template } of sorted) {
    const taken = Math.max(0, Math.min(left, replicas));
    left -= taken;
    const own = podRequests(objectAt(template, "spec"));
    total = addResources(total, Object.fromEntries(Object.entries(own).map(([name, milli]) => [name, milli * taken])));
  }
  return Object.fromEntries(
    Object.entries(total)
      .filter(([, milli]) => milli > 0)
      .map(([name, milli]) => [name, formatMilli(milli)]),
  );
}

function podRequests(podSpec: JsonObject): Resources {
  return arrayAt(podSpec, "containers").map(containerRequests).reduce(addResources, {});
}

function containerRequests(container: Json): Resources {
  const { requests, limits } = objectAt(container, "resources");
  return readResources(isJsonObject(requests) ? requests : isJsonObject(limits) ? limits : {});
}
