import type { GangLines, Lane } from "./gang-lines.ts";
import type { Account, QuotaBlock, QuotaState } from "./quota-state.ts";

/** The lanes that wait for quota, by the level that refused them and the room that they need there. */
export class QuotaWaits {
  readonly #byLevel = new Map<number, Map<number, Set<Lane>>>();

  /** Lets a lane wait until the room of a level may be enough for it. */
  add(lane: Lane, account: Account, of: { readonly block: QuotaBlock; readonly quota: QuotaState }): void {
    for (const level of of.quota.levelsUpTo(account, of.block)) {
      const byNeed = this.#byLevel.get(level) ?? new Map<number, Set<Lane>>();
      this.#byLevel.set(level, byNeed);
      const lanes = byNeed.get(of.block.leastNeed) ?? new Set();
      byNeed.set(of.block.leastNeed, lanes);
      lanes.add(lane);
      lane.waitsIn.push(lanes);
    }
  }

  /** Wakes the lanes for which levels that have widened may have room. */
  wake(quota: QuotaState, lines: GangLines): void {
    for (const level of quota.takeWidened()) {
      const room = quota.roomAt(level);
      for (const [need, lanes] of this.#byLevel.get(level) ?? []) {
        if (need <= room) for (const lane of lanes) lines.wake(lane);
      }
    }
  }
}
