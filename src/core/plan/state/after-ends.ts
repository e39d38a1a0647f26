import { borrowingLevel } from "./branch-use.ts";
import type { AskingGang, FindVictims } from "./find-victims.ts";
import type { FitClass } from "./fit-classes.ts";
import { type FitGroup, fitGroups } from "./place-all.ts";
import type { RoomTry } from "./requests.ts";
import type { Runner } from "./runners.ts";
import type { Parts } from "./state-parts.ts";

/**
 * The use of the pools that a gang asks for, and the room of one cluster, as if gangs had ended: those that leave,
 * those that are about to be preempted, and more that come and go one by one. `close` brings the state back.
 */
export class AfterEnds {
  readonly #parts: Parts;
  readonly #victims: FindVictims;
  readonly #asking: AskingGang;
  readonly #room: RoomTry;
  readonly #marks: { readonly quota: number; readonly room: number };

  constructor(of: { readonly parts: Parts; readonly victims: FindVictims }, asking: AskingGang, room: RoomTry) {
    this.#parts = of.parts;
    this.#victims = of.victims;
    this.#asking = asking;
    this.#room = room;
    this.#marks = { quota: of.parts.quota.mark, room: room.cluster.room.mark };
    of.victims.dischargeAll([]);
    of.victims.free(room.cluster, []);
  }

  /** Lets a gang end too. */
  end(gang: Runner): void {
    this.#move(gang, -1);
  }

  /** Lets a gang that has ended run again. */
  resume(gang: Runner): void {
    this.#move(gang, 1);
  }

  /**
   * How many of these gangs, in their order, must have ended at least: until then the nodes together have too little of
   * a resource. Infinite: more than the first `most`.
   */
  leastEnds(gangs: readonly Runner[], most: number): number {
    const { cluster, groups } = this.#room;
    const largest = largestOf(groups);
    if (largest === undefined) return 0;
    const { fit, count } = largest;
    const column = fit.columns[0] as number;
    let missing = amountOf(fit, column) * count - leftFor(cluster, fit);
    for (let at = 0; at < most; at++) {
      if (missing <= 0) return at;
      missing -= this.#freedBy(gangs[at] as Runner, fit);
    }
    return missing <= 0 ? most : Number.POSITIVE_INFINITY;
  }

  /** How much of a class's scarcest resource the end of a gang leaves on nodes that may take pods of the class. */
  #freedBy(gang: Runner, { rules, columns }: FitClass): number {
    const { cluster } = this.#room;
    if (gang.admission.cluster !== cluster.name) return 0;
    let freed = 0;
    for (const pod of this.#victims.podsOf(cluster, gang)) {
      const slot = cluster.room.slotOf(pod.node);
      const isOpen = slot !== undefined && cluster.room.allowedNow(rules, slot);
      if (isOpen) freed += amountOf(pod.fit, columns[0] as number);
    }
    return freed;
  }

  /** True if quotas allow the request, and the cluster has room for it. */
  fits(): boolean {
    return this.isAllowed() && fitGroups(this.#room.cluster.room, this.#room.groups);
  }

  isAllowed(): boolean {
    return this.#victims.lacking(this.#asking).size === 0;
  }

  /** True if the gang's queue has the quota, so that it borrows nothing. */
  isWithinQuota(): boolean {
    const { quota } = this.#parts;
    const { lane, wants } = this.#asking;
    const leaf = quota.branches.leaf(lane.line.name);
    return leaf === null || borrowingLevel(quota, leaf, wants) === 0;
  }

  close(): void {
    this.#parts.quota.undo(this.#marks.quota);
    this.#room.cluster.room.undo(this.#marks.room);
  }

  #move(gang: Runner, times: 1 | -1): void {
    const { account, uses, admission } = gang;
    const { cluster } = this.#room;
    const { wants } = this.#asking;
    for (const [pool, amount] of uses) {
      if (wants.has(pool)) this.#parts.quota.charge(account, pool, times * amount);
    }
    if (admission.cluster !== cluster.name) return;
    for (const { node, fit } of this.#victims.podsOf(cluster, gang)) cluster.room.shift(node, fit, times);
  }
}

/** The pods that together request most of their scarcest resource. Undefined: none requests any. */
function largestOf(groups: readonly FitGroup[]): FitGroup | undefined {
  const demand = ({ fit, count }: FitGroup) => (fit.amounts[0] ?? 0) * count;
  const [first] = groups.filter((one) => demand(one) > 0).sort((a, b) => demand(b) - demand(a));
  return first;
}

/** How much of a class's scarcest resource is left on the nodes that may take its pods, all together. */
function leftFor({ room }: Pick<RoomTry["cluster"], "room">, { rules, columns }: FitClass): number {
  let left = 0;
  for (let slot = 0; slot < room.slotCount; slot++) {
    if (room.allowedNow(rules, slot)) left += Math.max(0, room.freeAt(columns[0] as number, slot));
  }
  return left;
}

/** How much of a column a pod requests. */
function amountOf({ columns, amounts }: FitClass, column: number): number {
  return amounts[columns.indexOf(column)] ?? 0;
}
