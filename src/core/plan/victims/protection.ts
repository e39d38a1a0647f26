/** Why gangs that a policy would let be preempted are left alone. */
import { type Branch, upward } from "../usage/branches.ts";
import { minRuntimeMs, protectedUntilMs } from "./min-runtime.ts";

/**
 * `minRuntime`: it runs for too short a time. `maxPreemptions`: it was preempted often enough. `frozen`: its queue is,
 * or a pool that it uses.
 */
export type ProtectedBy = "minRuntime" | "maxPreemptions" | "frozen";

/** Gangs that would be preempted if nobody were protected. */
export type Protected = {
  /** In the order of the type. */
  readonly by: readonly ProtectedBy[];
  /** The one of them whose minimum run time ends last. Omitted: none has run for too short a time. */
  readonly last?: { readonly jobUid: string; readonly admission: number };
};

const WORDS: Readonly<Record<ProtectedBy, string>> = {
  minRuntime: "are protected by a minimum run time",
  maxPreemptions: "were preempted as often as they may be",
  frozen: "are frozen",
};

/** In the order in which they are said. */
const ALL = Object.keys(WORDS) as readonly ProtectedBy[];

type RunningFor = { readonly admitTimeMs: number; readonly preemptions?: number; readonly maxPreemptions?: number };

/** What protects a gang that runs, but for freezes. `untilMs`: the end of its minimum run time. */
export function protectionOf(
  gang: RunningFor,
  { victim, preemptor }: { readonly victim: Branch; readonly preemptor: Branch },
  nowMs: number,
): { readonly by: ProtectedBy; readonly untilMs: number } | null {
  if (isProtected(gang, victim)) return { by: "maxPreemptions", untilMs: Number.POSITIVE_INFINITY };
  const untilMs = protectedUntilMs(gang.admitTimeMs, minRuntimeMs(victim, preemptor, gang.preemptions));
  return untilMs <= nowMs ? null : { by: "minRuntime", untilMs };
}

/** Sorts what protects gangs, each once. */
export function protectedBy(found: Iterable<ProtectedBy>): readonly ProtectedBy[] {
  const set = new Set(found);
  return ALL.filter((one) => set.has(one));
}

/**
 * `; gangs that would be preempted for it are protected by …`. `untilMs`: when the last one has run for long enough.
 */
export function protectedMessage({ by }: Protected, untilMs: number | null): string {
  const words = by.map((one) => {
    const until =
      one !== "minRuntime" || untilMs === null ? "" : `, until ${new Date(untilMs).toISOString()} at the latest`;
    return WORDS[one] + until;
  });
  return `; gangs that would give way for it ${words.join(", or ")}`;
}

/** For a gang that was preempted and may take by its final share alone. */
export const FINAL_SHARE_WORDS =
  "; it was preempted, or another gang took its place, so it may preempt others by its final share alone, until a " +
  "job of its tree of queues is submitted, resized or ends, or a quota or a policy of the tree changes";

/** The part of a gang that decides whether it was preempted often enough. */
type PreemptedGang = { readonly preemptions?: number; readonly maxPreemptions?: number };

/**
 * True if a gang was preempted as often as it may be: as its job asks, and at most as often as the nearest queue says
 * that has a limit, from its own upward.
 */
export function isProtected({ preemptions = 0, maxPreemptions }: PreemptedGang, leaf: Branch): boolean {
  const asked = maxPreemptions ?? Number.POSITIVE_INFINITY;
  return preemptions >= Math.min(asked, nearestMax(leaf));
}

function nearestMax(leaf: Branch): number {
  for (const { policy } of upward(leaf)) if (policy.maxPreemptions !== null) return policy.maxPreemptions;
  return Number.POSITIVE_INFINITY;
}
