import { compareText } from "../../../runtime/compare-text.ts";
import type { RunningGang } from "./running-gang.ts";

/** The part of a gang that its place among the candidates depends on. */
export type OrderedGang = Pick<RunningGang, "uid" | "priority" | "admitTimeMs" | "evicted" | "isGrowth"> & {
  readonly account: { readonly queue: string };
};

/**
 * Compares candidates as Kueue does: those that are being preempted already come first, then those of other queues than
 * the preemptor's, of lower priority, admitted later, `prefer`, uid. What elastic gangs have beyond their minimum comes
 * before whole gangs.
 */
export function candidateOrder<Gang extends OrderedGang>(
  preemptorQueue: string,
  prefer?: (a: Gang, b: Gang) => number,
) {
  const isOwn = ({ account }: Gang) => account.queue === preemptorQueue;
  return (a: Gang, b: Gang): number =>
    turnOf(a) - turnOf(b) ||
    Number(isOwn(a)) - Number(isOwn(b)) ||
    a.priority - b.priority ||
    b.admitTimeMs - a.admitTimeMs ||
    (prefer?.(a, b) ?? 0) ||
    compareText(a.uid, b.uid);
}

/** When a candidate is taken: the less, the earlier, whatever else it is. */
export function turnOf({ evicted, isGrowth }: Pick<OrderedGang, "evicted" | "isGrowth">): 0 | 1 | 2 {
  if (evicted) return 0;
  return isGrowth === true ? 1 : 2;
}
