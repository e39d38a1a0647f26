import { preemptionBackoffMs } from "../../job/preemption.ts";
import { childTowards, commonAncestor } from "../usage/branch-use.ts";
import { type Branch, upward } from "../usage/branches.ts";

/** Whether a gang is preempted for its own queue or for another, whose queue reclaims. */
export type PreemptedBy = "ownQueue" | "otherQueue";

/**
 * How long a gang runs at least before it may be preempted. For a gang of its own queue: the nearest value that is set,
 * from the queue upward. For one of another queue: the same from the highest branch that holds the gang and not the
 * preemptor, so that a queue protects itself only from those nearer to it than that. If none is set, a gang that was
 * preempted before runs at least as long as it had to wait after that. Otherwise it would lose what it runs in each gap
 * between gangs that preempt it.
 */
export function minRuntimeMs(victim: Branch, preemptor: Branch, preemptions = 0): number {
  const to = victim === preemptor ? "ownQueue" : "otherQueue";
  return nearestMinRuntimeMs(reclaimedBranch(victim, preemptor), to) ?? preemptionBackoffMs(preemptions);
}

/** The nearest minimum run time that is set, from a branch upward. Null: none is. */
export function nearestMinRuntimeMs(from: Branch, to: PreemptedBy): number | null {
  for (const { policy } of upward(from)) {
    const value = to === "ownQueue" ? policy.minRuntimePreemptMs : policy.minRuntimeReclaimMs;
    if (value !== null) return value;
  }
  return null;
}

/**
 * The branch right below the lowest one that holds both leaves, on the victim's side. Of one leaf: itself. In another
 * tree: the victim's root.
 */
export function reclaimedBranch(victim: Branch, preemptor: Branch): Branch {
  return childTowards(commonAncestor(victim, preemptor), victim);
}

/** A gang is protected before this time. A gang that has not started, with `startMs` null, is not protected. */
export function protectedUntilMs(startMs: number | null, minRuntime: number): number {
  return startMs === null ? Number.NEGATIVE_INFINITY : startMs + minRuntime;
}

/** How many members of one replica type may be taken. While the gang is protected: those beyond its minimum. */
export function membersToTake(
  { running, min }: { readonly running: number; readonly min: number },
  { untilMs, nowMs }: { readonly untilMs: number; readonly nowMs: number },
): number {
  return nowMs < untilMs ? Math.max(0, running - min) : running;
}
