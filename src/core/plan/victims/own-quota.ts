import { usesItsQuota } from "../usage/branch-use.ts";
import { type Branch, upward } from "../usage/branches.ts";
import { type Preemptor, type RunningGang, type VictimSearch, whileGone } from "./running-gang.ts";

/**
 * True if a gang's queue, and each branch between it and the ancestor, still use their own quota of what the preemptor
 * needs once the gang is gone. Otherwise gangs of that branch might take back this quota from the preemptor at once.
 */
export function leavesQuotaInUse(
  { quota }: Pick<VictimSearch, "quota">,
  { needed }: Pick<Preemptor, "needed">,
  of: { readonly gang: RunningGang; readonly leaf: Branch; readonly ancestor: Branch | null },
): boolean {
  const { gang, leaf, ancestor } = of;
  const pools = [...needed].filter((pool) => (gang.uses.get(pool) ?? 0) > 0);
  return whileGone(quota, [gang], () => {
    for (const branch of upward(leaf)) {
      if (branch === ancestor) return true;
      if (!usesItsQuota(quota, branch, pools)) return false;
    }
    return true;
  });
}
