import type { Branch } from "../state/branches.ts";
import type { RunningGang, Taker, VictimSearch } from "./running-gang.ts";

/** The gangs of a leaf that the taker's queue may have preempted by its policy, and that use a pool that it needs. */
export function candidatesOf(
  { gangsOf, mayTake }: VictimSearch,
  taker: Taker,
  { leaf, takerLeaf }: { readonly leaf: Branch; readonly takerLeaf: Branch },
): readonly RunningGang[] {
  const { withinQueue, reclaimWithinTree } = takerLeaf.policy;
  const policy = leaf === takerLeaf ? withinQueue : reclaimWithinTree;
  if (policy === "NEVER") return [];
  return gangsOf(leaf.name).filter(
    (gang) => usesOne(gang, taker.needed) && allows(policy, taker, gang) && (mayTake?.(gang) ?? true),
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

type Ranked = Pick<Taker, "priority" | "createTimeMs">;

/** True if a policy lets a gang give way for a taker. */
export function allows(policy: AllowingPolicy, taker: Ranked, gang: Ranked): boolean {
  switch (policy) {
    case "ANY":
      return true;
    case "LOWER_PRIORITY":
      return gang.priority < taker.priority;
    case "LOWER_OR_NEWER_EQUAL_PRIORITY": {
      const newer = gang.priority === taker.priority && gang.createTimeMs > taker.createTimeMs;
      return gang.priority < taker.priority || newer;
    }
  }
}
