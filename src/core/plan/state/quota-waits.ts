import type { Lane } from "./gang-lines.ts";
import { HopefulLists, type WaitList } from "./hopeful-lists.ts";
import type { QuotaBlock, QuotaState } from "./quota-state.ts";
import type { Request } from "./requests.ts";
import { Sweep } from "./sweep.ts";

/** The lanes that need the same room at a level. */
export type LevelList = WaitList & {
  readonly level: number;
  readonly need: number;
  /** They also need room for this request: while it is closed, room at the level is in vain. Null: none is known. */
  readonly request: Request | null;
};

/** A level that keeps a lane refused, and the request that the lane has once the level has room. */
type QuotaWait = { readonly block: QuotaBlock; readonly quota: QuotaState; readonly request: Request | null };

/**
 * The lanes that wait for quota, by the level that refused them and the room that they need there. Those that lack room
 * in clusters as well hear of quota only once there may be room, and of room only once they have the quota.
 */
export class QuotaWaits {
  readonly hopeful = new HopefulLists<LevelList>();
  readonly #byLevel = new Map<number, Map<number, Map<Request | null, LevelList>>>();
  readonly #sweep = new Sweep(this.#byLevel);

  /** Lets a lane wait until the room of a level may be enough for it. */
  add(lane: Lane, of: QuotaWait): void {
    for (const level of of.quota.levelsUpTo(lane.account, of.block)) {
      const list = this.#listOf(level, of.block.leastNeed, of.request);
      if (list.waiting.has(lane)) continue;
      list.waiting.add(lane);
      lane.waitsIn.push(list);
    }
  }

  /** Ends a lane's wait for a block. */
  drop(lane: Lane, of: QuotaWait): void {
    for (const level of of.quota.levelsUpTo(lane.account, of.block)) {
      const list = this.#listOf(level, of.block.leastNeed, of.request);
      if (list.waiting.delete(lane)) lane.waitsIn.splice(lane.waitsIn.indexOf(list), 1);
    }
  }

  /** Notes the lists that levels had too little room for, but may have enough for now. */
  sync(quota: QuotaState, clustersVersion: number): void {
    for (const [level, least] of quota.takeWidened()) {
      for (const list of this.#metAt(level, { least, room: quota.roomAt(level) })) {
        if (list.waiting.size > 0 && !isShutOut(list, clustersVersion)) this.hopeful.add(list);
      }
    }
  }

  /** Notes the lists for which a request opens, and whose levels have room. */
  noteOpen(request: Request, quota: QuotaState): void {
    for (const list of request.lists) {
      if (list.waiting.size > 0 && list.need <= quota.roomAt(list.level)) this.hopeful.add(list);
    }
  }

  /** Ends the hope of lists for which a round has left too little room. */
  closeHopeful(quota: QuotaState, clustersVersion: number): void {
    for (const list of this.hopeful) {
      if (list.need > quota.roomAt(list.level) || isShutOut(list, clustersVersion)) this.hopeful.drop(list);
    }
  }

  /** Forgets the lists of some levels in which no lane waits any more. */
  forgetSome(): void {
    for (const [, byNeed] of this.#sweep.next()) {
      for (const [need, lists] of byNeed) {
        dropEmpty(lists);
        if (lists.size === 0) byNeed.delete(need);
      }
    }
  }

  /** The lists that a level has enough room for now, but had not. */
  *#metAt(level: number, of: { readonly least: number; readonly room: number }): Generator<LevelList> {
    for (const [need, lists] of this.#byLevel.get(level) ?? []) if (isMet(need, of)) yield* lists.values();
  }

  #listOf(level: number, need: number, request: Request | null): LevelList {
    const byNeed = this.#byLevel.get(level) ?? new Map<number, Map<Request | null, LevelList>>();
    this.#byLevel.set(level, byNeed);
    const lists = byNeed.get(need) ?? new Map<Request | null, LevelList>();
    byNeed.set(need, lists);
    const known = lists.get(request);
    if (known !== undefined) return known;
    const list: LevelList = { level, need, request, waiting: new Set(), hopeful: false };
    lists.set(request, list);
    request?.lists.add(list);
    return list;
  }
}

function dropEmpty(lists: Map<Request | null, LevelList>): void {
  for (const list of lists.values()) {
    if (list.waiting.size > 0) continue;
    lists.delete(list.request);
    list.request?.lists.delete(list);
  }
}

/** True if no cluster has room for the request of a list. */
function isShutOut({ request }: LevelList, clustersVersion: number): boolean {
  return request !== null && request.closedFor === clustersVersion;
}

/** True if the room has grown, and a need that was larger than the least room is no larger than the room now. */
function isMet(need: number, { least, room }: { readonly least: number; readonly room: number }): boolean {
  return room > least && need <= room && (need > least || need === Number.NEGATIVE_INFINITY);
}
