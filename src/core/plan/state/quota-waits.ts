import type { GangLines, Lane } from "./gang-lines.ts";
import { HopefulLists, type WaitList } from "./hopeful-lists.ts";
import type { Account } from "./quota-levels.ts";
import type { QuotaBlock, QuotaState } from "./quota-state.ts";

/** The lanes that need the same room at a level. */
export type LevelList = WaitList & { readonly level: number; readonly need: number };

/** The lanes that wait for quota, by the level that refused them and the room that they need there. */
export class QuotaWaits {
  readonly hopeful = new HopefulLists<LevelList>();
  readonly #byLevel = new Map<number, Map<number, LevelList>>();

  /** Lets a lane wait until the room of a level may be enough for it. */
  add(lane: Lane, account: Account, of: { readonly block: QuotaBlock; readonly quota: QuotaState }): void {
    for (const level of of.quota.levelsUpTo(account, of.block)) {
      const list = this.#listOf(level, of.block.leastNeed);
      if (list.waiting.has(lane)) continue;
      list.waiting.add(lane);
      lane.waitsIn.push(list);
    }
  }

  /** Ends a lane's wait for a block. */
  drop(lane: Lane, account: Account, of: { readonly block: QuotaBlock; readonly quota: QuotaState }): void {
    for (const level of of.quota.levelsUpTo(account, of.block)) {
      const list = this.#listOf(level, of.block.leastNeed);
      if (list.waiting.delete(lane)) lane.waitsIn.splice(lane.waitsIn.indexOf(list), 1);
    }
  }

  /** Notes the lists that levels had too little room for, but may have enough for now. */
  sync(quota: QuotaState, lines: GangLines): void {
    for (const [level, least] of quota.takeWidened()) {
      const room = quota.roomAt(level);
      for (const [need, list] of this.#byLevel.get(level) ?? []) {
        if (isMet(need, { least, room }) && list.waiting.size > 0) this.hopeful.add(list);
      }
    }
    this.hopeful.wakeFew(lines);
  }

  /** Ends the hope of lists for which a round has left too little room. */
  closeHopeful(quota: QuotaState): void {
    for (const list of this.hopeful) if (list.need > quota.roomAt(list.level)) this.hopeful.drop(list);
  }

  #listOf(level: number, need: number): LevelList {
    const byNeed = this.#byLevel.get(level) ?? new Map<number, LevelList>();
    this.#byLevel.set(level, byNeed);
    const list = byNeed.get(need) ?? { level, need, waiting: new Set(), hopeful: false };
    byNeed.set(need, list);
    return list;
  }
}

/** True if the room has grown, and a need that was larger than the least room is no larger than the room now. */
function isMet(need: number, { least, room }: { readonly least: number; readonly room: number }): boolean {
  return room > least && need <= room && (need > least || need === Number.NEGATIVE_INFINITY);
}
