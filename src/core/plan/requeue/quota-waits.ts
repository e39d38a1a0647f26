import { Sweep } from "../../../runtime/sweep.ts";
import { stopWaiting, waitForQuota } from "../queues/class-state.ts";
import type { GangClass, LevelList, Request } from "../queues/records.ts";
import type { QuotaBlock, QuotaState } from "../usage/quota-state.ts";
import { RequeueCandidates } from "./requeue-candidates.ts";

/** A level that keeps a gang class refused, and the request that the gang class has once the level has capacity. */
type QuotaWait = { readonly block: QuotaBlock; readonly quota: QuotaState; readonly request: Request | null };

/**
 * The gang classes that wait for quota, by the level that refused them and the capacity that they need there. Those
 * that lack capacity in clusters as well are woken by quota only once there may be capacity, and by capacity only once
 * they have the quota.
 */
export class QuotaWaits {
  readonly candidates = new RequeueCandidates<LevelList>();
  readonly #byLevel = new Map<number, Map<number, Map<Request | null, LevelList>>>();
  readonly #sweep = new Sweep(this.#byLevel);

  /** Lets a gang class wait until the capacity of a level may be enough for it. */
  add(gangClass: GangClass, of: QuotaWait): void {
    for (const level of of.quota.levelsUpTo(gangClass.account, of.block)) {
      waitForQuota(gangClass, this.#listOf(level, of.block.leastNeed, of.request));
    }
  }

  /** Ends a class's wait for a block. */
  drop(gangClass: GangClass, of: QuotaWait): void {
    for (const level of of.quota.levelsUpTo(gangClass.account, of.block)) {
      stopWaiting(gangClass, this.#listOf(level, of.block.leastNeed, of.request));
    }
  }

  /** Records the lists that levels had too little capacity for, but may have enough for now. */
  sync(quota: QuotaState, clustersVersion: number): void {
    for (const [level, least] of quota.takeWidened()) {
      for (const list of this.#metAt(level, { least, available: quota.availableAt(level) })) {
        if (list.waiting.size > 0 && !isShutOut(list, clustersVersion)) this.candidates.add(list);
      }
    }
  }

  /** Records the lists for which a request opens, and whose levels have capacity. */
  noteOpen(request: Request, quota: QuotaState): void {
    for (const list of request.lists) {
      if (list.waiting.size > 0 && list.need <= quota.availableAt(list.level)) this.candidates.add(list);
    }
  }

  /** Drops the candidates among lists for which a round has left too little capacity. */
  closeCandidates(quota: QuotaState, clustersVersion: number): void {
    for (const list of this.candidates) {
      if (list.need > quota.availableAt(list.level) || isShutOut(list, clustersVersion)) this.candidates.drop(list);
    }
  }

  /** Forgets the lists of some levels in which no gang class waits any more. */
  forgetSome(): void {
    for (const [, byNeed] of this.#sweep.next()) {
      for (const [need, lists] of byNeed) {
        dropEmpty(lists);
        if (lists.size === 0) byNeed.delete(need);
      }
    }
  }

  /** The lists that a level has enough capacity for now, but had not. */
  *#metAt(level: number, of: { readonly least: number; readonly available: number }): Generator<LevelList> {
    for (const [need, lists] of this.#byLevel.get(level) ?? []) if (isMet(need, of)) yield* lists.values();
  }

  #listOf(level: number, need: number, request: Request | null): LevelList {
    const byNeed = this.#byLevel.get(level) ?? new Map<number, Map<Request | null, LevelList>>();
    this.#byLevel.set(level, byNeed);
    const lists = byNeed.get(need) ?? new Map<Request | null, LevelList>();
    byNeed.set(need, lists);
    const known = lists.get(request);
    if (known !== undefined) return known;
    const list: LevelList = { level, need, request, waiting: new Set(), isCandidate: false };
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

/** True if no cluster has capacity for the request of a list. */
function isShutOut({ request }: LevelList, clustersVersion: number): boolean {
  return request !== null && request.closedFor === clustersVersion;
}

/**
 * True if the capacity has grown, and a need that was larger than the least capacity is no larger than the capacity
 * now.
 */
function isMet(need: number, { least, available }: { readonly least: number; readonly available: number }): boolean {
  return available > least && need <= available && (need > least || need === Number.NEGATIVE_INFINITY);
}
