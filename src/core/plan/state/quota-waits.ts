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
      if (lanes.has(lane)) continue;
      lanes.add(lane);
      lane.waitsIn.push(lanes);
    }
  }

  /** Ends a lane's wait for a block. */
  drop(lane: Lane, account: Account, of: { readonly block: QuotaBlock; readonly quota: QuotaState }): void {
    for (const level of of.quota.levelsUpTo(account, of.block)) {
      const lanes = this.#byLevel.get(level)?.get(of.block.leastNeed);
      if (lanes === undefined || !lanes.delete(lane)) continue;
      lane.waitsIn.splice(lane.waitsIn.indexOf(lanes), 1);
    }
  }

  /** Wakes the lanes that levels had too little room for, but may have enough for now. */
  wake(quota: QuotaState, lines: GangLines): void {
    for (const [level, least] of quota.takeWidened()) {
      const room = quota.roomAt(level);
      for (const [need, lanes] of this.#byLevel.get(level) ?? []) {
        if (isMet(need, { least, room })) for (const lane of lanes) lines.wake(lane);
      }
    }
  }
}

/** True if the room has grown, and a need that was larger than the least room is no larger than the room now. */
function isMet(need: number, { least, room }: { readonly least: number; readonly room: number }): boolean {
  return room > least && need <= room && (need > least || need === Number.NEGATIVE_INFINITY);
}
