import { arrayAt, isJsonObject, type Json, type JsonObject, objectAt, stringAt } from "../../../runtime/json.ts";
import { compareRoles } from "../../job/roles.ts";
import { formatMilli, parseMilli } from "../quantity.ts";

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
  const total = new Map<string, bigint>();
  for (const { replicas, template } of sorted) {
    const taken = Math.max(0, Math.min(left, replicas));
    left -= taken;
    for (const container of arrayAt(objectAt(template, "spec"), "containers")) {
      for (const [name, milli] of containerRequests(container)) {
        total.set(name, (total.get(name) ?? 0n) + milli * BigInt(taken));
      }
    }
  }
  const requested = [...total].filter(([, milli]) => milli > 0n);
  return Object.fromEntries(requested.map(([name, milli]) => [name, formatMilli(milli)]));
}

/** In thousandths, exact whatever their size. */
function containerRequests(container: Json): readonly (readonly [name: string, milli: bigint])[] {
  const { requests, limits } = objectAt(container, "resources");
  const list = isJsonObject(requests) ? requests : isJsonObject(limits) ? limits : {};
  return Object.entries(list).map(([name, quantity]) => [name, parseMilli(String(quantity)) ?? 0n]);
}
