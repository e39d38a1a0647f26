import { compareText } from "../../../runtime/compare-text.ts";
import type { RunningGang } from "./running-gang.ts";

/** The part of a gang that its place among the candidates depends on. */
export type OrderedGang = Pick<RunningGang, "uid" | "priority" | "admitTimeMs" | "evicted"> & {
  readonly account: { readonly queue: string };
};

/**
 * Compares candidates as Kueue does: those that give way already come first, then those of other queues than the
 * taker's, of lower priority, admitted later, `prefer`, uid.
 */
export function candidateOrder<Gang extends OrderedGang>(takerQueue: string, prefer?: (a: Gang, b: Gang) => number) {
  const isOwn = ({ account }: Gang) => account.queue === takerQueue;
  return (a: Gang, b: Gang): number =>
    Number(b.evicted) - Number(a.evicted) ||
    Number(isOwn(a)) - Number(isOwn(b)) ||
    a.priority - b.priority ||
    b.admitTimeMs - a.admitTimeMs ||
    (prefer?.(a, b) ?? 0) ||
    compareText(a.uid, b.uid);
}
