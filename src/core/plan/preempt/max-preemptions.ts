import { type Branch, upward } from "../state/branches.ts";

/** The part of a gang that decides whether it was preempted often enough. */
type PreemptedGang = { readonly preemptions?: number; readonly maxPreemptions?: number };

/**
 * True if a gang was preempted as often as it may be: as its job asks, and at most as often as the nearest queue says
 * that has a limit, from its own upward.
 */
export function isSpared({ preemptions = 0, maxPreemptions }: PreemptedGang, leaf: Branch): boolean {
  const asked = maxPreemptions ?? Number.POSITIVE_INFINITY;
  return preemptions >= Math.min(asked, nearestMax(leaf));
}

function nearestMax(leaf: Branch): number {
  for (const { policy } of upward(leaf)) if (policy.maxPreemptions !== null) return policy.maxPreemptions;
  return Number.POSITIVE_INFINITY;
}
