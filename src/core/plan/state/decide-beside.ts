import { minOf } from "../../../runtime/lists.ts";
import type { PlaceInLine, PlannedAdmission } from "../plan-types.ts";
import type { PlannedPreemption } from "../preemption.ts";
import type { Assignment, Preempted } from "./assignment.ts";
import type { PoolAmounts } from "./branch-use.ts";
import type { DecideLane } from "./decide-lane.ts";
import { type Entry, headOf, type Lane } from "./gang-lines.ts";
import { chargeHolds, type KeptRoom, mayPass, withLifted } from "./kept-room.ts";
import { makeRestless } from "./lane-turns.ts";
import { compareAged } from "./line-ageing.ts";
import type { LaneRefusal } from "./refused.ts";
import type { Parts } from "./state-parts.ts";

/**
 * Decides about lanes beside what the round keeps for reservations: a lane whose gangs may pass a reservation sees the
 * room and the quota without what that keeps. Notes which reservation keeps a refused lane out.
 */
export class DecideBeside {
  readonly #parts: Parts;
  readonly #decide: DecideLane;
  readonly #nowMs: number;

  constructor(parts: Parts, decide: DecideLane, nowMs: number) {
    this.#parts = parts;
    this.#decide = decide;
    this.#nowMs = nowMs;
  }

  assign(lane: Lane, entry: Entry): Assignment | null {
    const found = this.#beside(lane, () => this.#decide.assign(lane, entry));
    if (found === null) this.#noteKeptFor(lane, entry);
    return found;
  }

  /**
   * Admits the first gang of a lane with what it was assigned. If reservations that it passes hold tokens which it
   * needs, it is nominated instead, and boards once it has taken these over. Null: it no longer fits.
   */
  take(lane: Lane, entry: Entry, assignment: Assignment): PlannedAdmission | PlannedPreemption | null {
    const holders = this.#holdersInTheWay(lane, assignment.wants);
    const planned = this.#beside(lane, () => this.#decide.take(lane, entry, assignment));
    if (planned === null || holders.length === 0) return planned;
    const takesOver = holders.map(({ gang }) => ({ jobUid: gang.uid, admission: gang.lastAdmission + 1 }));
    return { planned, victims: [], takesOver };
  }

  /** The gangs with reservations that a lane passes and that hold tokens, if these leave it too few. */
  #holdersInTheWay(lane: Lane, wants: PoolAmounts): readonly Entry[] {
    const passed = this.#passedBy(lane).filter(({ entry }) => {
      return Object.keys(this.#parts.holdsOf(entry.gang.uid) ?? {}).some((pool) => wants.has(pool));
    });
    return passed.length === 0 ? [] : this.#whoLeaveTooLittle(passed, lane, wants);
  }

  /** The gangs of reservations that a lane passes, if without the tokens that they hold it has too few. */
  #whoLeaveTooLittle(passed: readonly KeptRoom[], lane: Lane, wants: PoolAmounts): readonly Entry[] {
    const { quota } = this.#parts;
    const holders = passed.map(({ entry }) => entry);
    const areEnough = this.#without(passed, () => {
      const { mark } = quota;
      for (const entry of holders) chargeHolds(this.#parts, entry, 1);
      const { account, priority } = lane;
      const enough = [...wants].every(([pool, need]) => quota.admits(account, pool, { need, priority }));
      quota.undo(mark);
      return enough;
    });
    return areEnough ? [] : holders;
  }

  preempt(lane: Lane, entry: Entry, assignment: Assignment): Preempted {
    return this.#beside(lane, () => this.#decide.preempt(lane, entry, assignment));
  }

  refuse(lane: Lane, entry: Entry): Omit<PlaceInLine, "after"> | null {
    const inLine = this.#beside(lane, () => this.#decide.refuse(lane, entry));
    this.#noteKeptFor(lane, entry);
    return inLine;
  }

  /**
   * False for a lane that may pass a reservation. Which reservation keeps a lane out is asked when the lane may look
   * for victims: its lists do not tell when that changes.
   */
  staysRefused(lane: Lane): boolean {
    if (this.#mayPassAny(lane)) return false;
    if (this.#decide.isPaused) return this.#decide.options.staysRefused(lane);
    if (!this.#decide.options.staysRefused(lane)) return false;
    if (lane.refusal?.keptFor !== undefined) return this.#staysKeptOut(lane, lane.refusal.keptFor);
    // Such a lane hears of no room that a reservation keeps.
    return lane.restless !== "victims" || !this.#mayBeKeptOut(lane);
  }

  /** False: no reservation is in a lane's way. */
  #mayBeKeptOut(lane: Lane): boolean {
    const { kept } = this.#parts;
    if (kept.length === 0 || this.#decide.isClosedWithout(lane, kept)) return false;
    return this.#without(kept, () => this.#decide.mayFit(lane));
  }

  /** Lets the round look at every lane that may pass a reservation. */
  wakePassing(): void {
    const { kept, lines } = this.#parts;
    if (kept.length === 0) return;
    const lowest = minOf(kept.map(({ entry }) => entry.gang.priority));
    for (const lane of lines.passing.before(lowest)) if (this.#mayPassAny(lane)) lines.wake(lane);
  }

  #mayPassAny(lane: Lane): boolean {
    for (const kept of this.#parts.kept) if (mayPass(lane, kept, this.#nowMs)) return true;
    return false;
  }

  /** False: no gang of a strict queue passes one with a reservation, but those that its reservation lets pass. */
  readonly passesReserved = (lane: Lane): boolean => {
    const { reserved } = lane.line;
    const entry = headOf(lane);
    if (reserved === null || entry === undefined || compareAged(entry, reserved, this.#nowMs) < 0) return true;
    const kept = this.#parts.kept.find((one) => one.entry === reserved);
    return kept !== undefined && mayPass(lane, kept, this.#nowMs);
  };

  #beside<T>(lane: Lane, decide: () => T): T {
    return this.#without(this.#passedBy(lane), decide);
  }

  #passedBy(lane: Lane): readonly KeptRoom[] {
    const passed: KeptRoom[] = [];
    for (const kept of this.#parts.kept) if (mayPass(lane, kept, this.#nowMs)) passed.push(kept);
    return passed;
  }

  #without<T>(lifted: readonly KeptRoom[], decide: () => T): T {
    return withLifted(this.#parts, lifted, decide);
  }

  /** True if the same reservation in the same cluster still keeps a lane out. */
  #staysKeptOut(lane: Lane, { uid, cluster }: NonNullable<LaneRefusal["keptFor"]>): boolean {
    const entry = headOf(lane);
    const kept = entry === undefined ? null : this.#firstInTheWay(lane, entry);
    return kept !== null && kept.entry.gang.uid === uid && kept.cluster.name === cluster;
  }

  #noteKeptFor(lane: Lane, entry: Entry): void {
    if (lane.refusal === null || !this.#mayBeKeptOut(lane)) return;
    const kept = this.#firstInTheWay(lane, entry);
    if (kept === null) return;
    const { uid, namespace, name } = kept.entry.gang;
    lane.refusal = { ...lane.refusal, keptFor: { uid, namespace, name, cluster: kept.cluster.name } };
    makeRestless(lane, this.#parts);
  }

  /** The first reservation without which the gang would fit, together with those before it. Null: there is none. */
  #firstInTheWay(lane: Lane, entry: Entry): KeptRoom | null {
    const lifted: KeptRoom[] = [];
    for (const kept of this.#parts.kept) {
      lifted.push(kept);
      if (this.#decide.isClosedWithout(lane, lifted)) continue;
      if (this.#without(lifted, () => this.#decide.mayFit(lane) && this.#decide.fits(lane, entry))) return kept;
    }
    return null;
  }
}
