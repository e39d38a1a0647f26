import { compareText } from "../../../runtime/compare-text.ts";
import type { MemberGroup } from "../model/gang.ts";

/** Devices and the like have a domain in their name: `nvidia.com/gpu`. */
export function isExtended(resource: string): boolean {
  return resource.includes("/");
}

/** Scarce resources first: extended resources, processors, memory, then the others by name. */
export function compareResources(a: string, b: string): number {
  const rank = (name: string) => (isExtended(name) ? 0 : name === "cpu" ? 1 : name === "memory" ? 2 : 3);
  return rank(a) - rank(b) || compareText(a, b);
}

type Demand = Pick<MemberGroup, "requests" | "role">;

/** Larger requests first, by the scarcest resource in which two groups differ. */
export function compareDemand(a: Demand, b: Demand): number {
  const names = new Set([...Object.keys(a.requests), ...Object.keys(b.requests)]);
  for (const name of [...names].sort(compareResources)) {
    const difference = (b.requests[name] ?? 0) - (a.requests[name] ?? 0);
    if (difference !== 0) return difference;
  }
  return compareResources(a.role, b.role);
}
