import { minOf } from "../../../runtime/lists.ts";
import type { Fleet } from "../fit/fleet.ts";
import { chargeHolds, mayOvertake, mayTakePlace, type Reserved } from "../fit/reserved.ts";
import type { PlaceInLine, PlannedAdmission } from "../model/plan-types.ts";
import { asOvertaken, type PlannedPreemption } from "../model/preemption.ts";
import type { Search } from "../preempt/find-victims.ts";
import type { Round } from "../preempt/round.ts";
import { markReservedFor, requeue } from "../queues/class-state.ts";
import { compareAged, headOf } from "../queues/order.ts";
import type { GangClass, GangRecord, ReservedCapacity } from "../queues/records.ts";
import type { ClassRefusal } from "../queues/refusals.ts";
import type { PoolAmounts } from "../usage/branch-use.ts";
import type { DecideClass } from "./assign-class.ts";
import type { Assignment, Preempted } from "./assignment.ts";
import type { SecondLook } from "./refusal-check.ts";

/**
 * Decides about gang classes beside what the round keeps for reservations: a gang class whose gangs may overtake a
 * reservation sees the capacity and the quota without what that keeps. Records which reservation keeps a refused gang
 * class out.
 */
export class DecideBackfill {
  readonly #fleet: Fleet;
  readonly #reserved: Reserved;
  readonly #decide: DecideClass;
  readonly #nowMs: number;

  constructor({ fleet, reserved, nowMs }: Round, decide: DecideClass) {
    this.#fleet = fleet;
    this.#reserved = reserved;
    this.#decide = decide;
    this.#nowMs = nowMs;
  }

  assign(gangClass: GangClass, gang: GangRecord, search: Search): Assignment | null {
    const found = this.withoutOvertaken(gangClass, () => this.#decide.assign(gangClass, gang, search));
    if (found === null) this.#noteReservedFor(gangClass, gang);
    return found;
  }

  /**
   * Admits the first gang of a class with what it was assigned. If reservations that it overtakes hold tokens which it
   * needs, it is nominated instead, and is admitted once it has taken these over. Null: it no longer fits.
   */
  take(gangClass: GangClass, gang: GangRecord, assignment: Assignment): PlannedAdmission | PlannedPreemption | null {
    const holders = this.holdersInTheWay(gangClass, assignment.requested);
    const planned = this.withoutOvertaken(gangClass, () => this.#decide.take(gangClass, gang, assignment));
    if (planned === null || holders.length === 0) return planned;
    return { planned, victims: [], takesOver: holders.map(asOvertaken) };
  }

  /** The gangs with reservations that a gang class overtakes and that hold tokens, if these leave it too few. */
  holdersInTheWay(gangClass: GangClass, requested: PoolAmounts): readonly GangRecord[] {
    const overtaken = this.#overtakenBy(gangClass).filter(({ gang }) => {
      return Object.keys(this.#fleet.holdsOf(gang.facts.uid) ?? {}).some((pool) => requested.has(pool));
    });
    return overtaken.length === 0 ? [] : this.#whoLeaveTooLittle(overtaken, gangClass, requested);
  }

  /** The gangs of reservations that a gang class overtakes, if without the tokens that they hold it has too few. */
  #whoLeaveTooLittle(
    overtaken: readonly ReservedCapacity[],
    gangClass: GangClass,
    requested: PoolAmounts,
  ): readonly GangRecord[] {
    const { quota } = this.#fleet;
    const holders = overtaken.map(({ gang }) => gang);
    const areEnough = this.#reserved.without(overtaken, () => {
      const { mark } = quota;
      for (const gang of holders) chargeHolds(this.#fleet, gang, 1);
      const { account, priority } = gangClass;
      const enough = [...requested].every(([pool, need]) => quota.admits(account, pool, { need, priority }));
      quota.undo(mark);
      return enough;
    });
    return areEnough ? [] : holders;
  }

  preempt(gangClass: GangClass, gang: GangRecord, assignment: Assignment): Preempted {
    return this.withoutOvertaken(gangClass, () => this.#decide.preempt(gangClass, gang, assignment));
  }

  refuse(gangClass: GangClass, gang: GangRecord): Omit<PlaceInLine, "after"> | null {
    const inLine = this.withoutOvertaken(gangClass, () => this.#decide.refuse(gangClass, gang));
    this.#noteReservedFor(gangClass, gang);
    return inLine;
  }

  /**
   * Finds out whether everything that kept a gang class refused still does. A gang class that may overtake a
   * reservation or a nominee may fit. Which reservation keeps a gang class out is asked when it may look for victims:
   * its lists do not tell when that changes.
   */
  lookAgain(gangClass: GangClass, search: Search): SecondLook {
    if (this.#mayOvertakeAny(gangClass)) return "mayFit";
    const found = this.#decide.options.lookAgain(gangClass, search);
    if (search === "none" || found === "mayFit") return found;
    if (gangClass.refusal?.keptFor !== undefined) {
      return this.#staysExcluded(gangClass, gangClass.refusal.keptFor) ? "staysRefused" : "mayFit";
    }
    // Such a gang class is not woken by capacity that a reservation keeps.
    return gangClass.reevaluated !== "victims" || !this.#mayBeExcluded(gangClass) ? "staysRefused" : "mayFit";
  }

  /** False: no reservation is in a class's way. */
  #mayBeExcluded(gangClass: GangClass): boolean {
    const { kept } = this.#reserved;
    if (kept.length === 0 || this.#decide.isClosedWithout(gangClass, kept)) return false;
    return this.#reserved.without(kept, () => this.#decide.mayFit(gangClass));
  }

  /** Lets the round look at every gang class that may overtake a reservation or a nominee. */
  requeueOvertaking(): void {
    const { kept, contested } = this.#reserved;
    const { queues } = this.#fleet;
    for (const gangQueue of new Set(contested.map(({ gang }) => gang.gangQueue))) {
      for (const gangClass of gangQueue.classes.values())
        if (this.#mayOvertakeAny(gangClass)) requeue(gangClass, "mayFit");
    }
    if (kept.length === 0) return;
    const lowest = minOf(kept.map(({ gang }) => gang.facts.priority));
    for (const gangClass of queues.overtaking.before(lowest))
      if (this.#mayOvertakeAny(gangClass)) requeue(gangClass, "mayFit");
  }

  #mayOvertakeAny(gangClass: GangClass): boolean {
    for (const kept of this.#reserved.kept) if (mayOvertake(gangClass, kept, this.#nowMs)) return true;
    for (const kept of this.#reserved.contested) if (mayTakePlace(gangClass, kept, this.#nowMs)) return true;
    return false;
  }

  /**
   * False: no gang of a strict queue overtakes one with a reservation, but those that its reservation lets overtake.
   */
  readonly mayOvertakeReserved = (gangClass: GangClass): boolean => {
    const { reserved } = gangClass.gangQueue;
    const gang = headOf(gangClass);
    if (reserved === null || gang === undefined || compareAged(gang, reserved, this.#nowMs) < 0) return true;
    const kept = this.#reserved.kept.find((one) => one.gang === reserved);
    return kept !== undefined && mayOvertake(gangClass, kept, this.#nowMs);
  };

  /** Decides without what is kept for reservations that a gang class overtakes, and without these. */
  withoutOvertaken<T>(gangClass: GangClass, decide: () => T, others: readonly ReservedCapacity[] = []): T {
    const overtaken = this.#overtakenBy(gangClass);
    return this.#reserved.without(others.length === 0 ? overtaken : [...overtaken, ...others], decide);
  }

  #overtakenBy(gangClass: GangClass): readonly ReservedCapacity[] {
    const overtaken: ReservedCapacity[] = [];
    for (const kept of this.#reserved.kept) if (mayOvertake(gangClass, kept, this.#nowMs)) overtaken.push(kept);
    return overtaken;
  }

  /** True if the same reservation in the same cluster still keeps a gang class out. */
  #staysExcluded(gangClass: GangClass, { uid, cluster }: NonNullable<ClassRefusal["keptFor"]>): boolean {
    const gang = headOf(gangClass);
    const kept = gang === undefined ? null : this.#firstInTheWay(gangClass, gang);
    return kept !== null && kept.gang.facts.uid === uid && kept.cluster.name === cluster;
  }

  #noteReservedFor(gangClass: GangClass, gang: GangRecord): void {
    if (gangClass.refusal === null || !this.#mayBeExcluded(gangClass)) return;
    const kept = this.#firstInTheWay(gangClass, gang);
    if (kept === null) return;
    const { uid, namespace, name } = kept.gang.facts;
    markReservedFor(
      gangClass,
      gangClass.refusal,
      { uid, namespace, name, cluster: kept.cluster.name },
      this.#fleet.queues,
    );
  }

  /** The first reservation without which the gang would fit, together with those before it. Null: there is none. */
  #firstInTheWay(gangClass: GangClass, gang: GangRecord): ReservedCapacity | null {
    const excluded: ReservedCapacity[] = [];
    for (const kept of this.#reserved.kept) {
      excluded.push(kept);
      if (this.#decide.isClosedWithout(gangClass, excluded)) continue;
      if (this.#reserved.without(excluded, () => this.#decide.mayFit(gangClass) && this.#decide.fits(gangClass, gang)))
        return kept;
    }
    return null;
  }
}
