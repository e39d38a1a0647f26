import { rootOf } from "../usage/branches.ts";
import { classicVictims } from "./classic-victims.ts";
import { areFairlyLegal, fairVictims } from "./fair-victims.ts";
import type { Preemptor, Victim, VictimSearch } from "./running-gang.ts";

/**
 * The gangs that must be preempted for a preemptor that lacks quota, by Kueue's rules and the policies of its queue and
 * tree. Empty: it does not fit, whoever is preempted. The state of use is as before.
 */
export function victimsFor(search: VictimSearch, preemptor: Preemptor): readonly Victim[] {
  const preemptorLeaf = search.quota.branches.leaf(preemptor.account.queue);
  if (preemptorLeaf === null) return [];
  const { fairSharing } = rootOf(preemptorLeaf).policy;
  if (fairSharing === null) return classicVictims(search, preemptor, preemptorLeaf);
  return fairVictims(search, preemptor, { preemptorLeaf, strategies: fairSharing });
}

/** True if victims can be taken one after another, each allowed at that moment, also once others were admitted. */
export function areLegal(search: VictimSearch, preemptor: Preemptor, victims: readonly Victim[]): boolean {
  const preemptorLeaf = search.quota.branches.leaf(preemptor.account.queue);
  if (preemptorLeaf === null) return false;
  const { fairSharing } = rootOf(preemptorLeaf).policy;
  // Without fair sharing, only less use of its own queue protects a victim.
  return fairSharing === null || areFairlyLegal(search, preemptor, { preemptorLeaf, strategies: fairSharing, victims });
}
