import { rootOf } from "../state/branches.ts";
import { classicVictims } from "./classic-victims.ts";
import { areFairlyLegal, fairVictims } from "./fair-victims.ts";
import type { Taker, Victim, VictimSearch } from "./running-gang.ts";

/**
 * The gangs that must give way for a taker that lacks quota, by Kueue's rules and the policies of its queue and tree.
 * Empty: it does not fit, whoever gives way. The state of use is as before.
 */
export function victimsFor(search: VictimSearch, taker: Taker): readonly Victim[] {
  const takerLeaf = search.quota.branches.leaf(taker.account.queue);
  if (takerLeaf === null) return [];
  const { fairSharing } = rootOf(takerLeaf).policy;
  if (fairSharing === null) return classicVictims(search, taker, takerLeaf);
  return fairVictims(search, taker, { takerLeaf, strategies: fairSharing });
}

/** True if victims can be taken one after another, each allowed at that moment, also once others were admitted. */
export function areLegal(search: VictimSearch, taker: Taker, victims: readonly Victim[]): boolean {
  const takerLeaf = search.quota.branches.leaf(taker.account.queue);
  if (takerLeaf === null) return false;
  const { fairSharing } = rootOf(takerLeaf).policy;
  // Without fair sharing, only less use of its own queue protects a victim.
  return fairSharing === null || areFairlyLegal(search, taker, { takerLeaf, strategies: fairSharing, victims });
}
