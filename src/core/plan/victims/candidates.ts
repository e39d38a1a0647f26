import type { Branch } from "../usage/branches.ts";
import type { Preemptor, RunningGang, VictimSearch } from "./running-gang.ts";

/**
 * The gangs of a leaf that the preemptor's queue may have preempted by its policy, and that use a pool that it needs.
 */
export function candidatesOf(
  { gangsOf, mayTake }: VictimSearch,
  preemptor: Preemptor,
  { leaf, preemptorLeaf }: { readonly leaf: Branch; readonly preemptorLeaf: Branch },
): readonly RunningGang[] {
  const { withinQueue, reclaimWithinTree } = preemptorLeaf.policy;
  const policy = leaf === preemptorLeaf ? withinQueue : reclaimWithinTree;
  if (policy === "NEVER") return [];
  return gangsOf(leaf.name).filter(
    (gang) => usesOne(gang, preemptor.needed) && allows(policy, preemptor, gang) && (mayTake?.(gang) ?? true),
  );
}

/** The leaves of a tree that may have running gangs which use one of some pools. */
export function leavesFor(
  { leavesWith }: Pick<VictimSearch, "leavesWith">,
  root: Branch,
  pools: ReadonlySet<string>,
): readonly Branch[] {
  return leavesWith === undefined ? root.leaves : leavesWith(root, pools);
}

/** True if a gang uses one of some pools. */
export function usesOne({ uses }: Pick<RunningGang, "uses">, pools: Iterable<string>): boolean {
  for (const pool of pools) if ((uses.get(pool) ?? 0) > 0) return true;
  return false;
}

type AllowingPolicy = "LOWER_PRIORITY" | "LOWER_OR_NEWER_EQUAL_PRIORITY" | "ANY";

type Ranked = Pick<Preemptor, "priority" | "createTimeMs">;

/** True if a policy lets a gang be preempted for a preemptor. */
export function allows(policy: AllowingPolicy, preemptor: Ranked, gang: Ranked): boolean {
  switch (policy) {
    case "ANY":
      return true;
    case "LOWER_PRIORITY":
      return gang.priority < preemptor.priority;
    case "LOWER_OR_NEWER_EQUAL_PRIORITY": {
      const newer = gang.priority === preemptor.priority && gang.createTimeMs > preemptor.createTimeMs;
      return gang.priority < preemptor.priority || newer;
    }
  }
}
