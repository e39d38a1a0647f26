/**
 * Whose turn it is to look for gangs that may be preempted. A search costs more than all else that a round does for a
 * gang, so a round searches for a bounded number of gangs, and the next rounds for the others.
 */
import type { GangLines, Lane, Line } from "./gang-lines.ts";
import { lanesInOrder } from "./lane-walk.ts";

/** A search that finds victims costs about as much as so many that find none. */
const FOUND_COST = 5;

export class SearchTurns {
  /** The lanes that are to look, in the order in which they were told to. It only shrinks until it is empty. */
  #due = new Set<Lane>();
  /** Those that were told since it was filled: they look after all of these, also where their queue has turns. */
  #later = new Set<Lane>();
  /** The lanes that look again in the next round. */
  readonly #again = new Set<Lane>();
  /** How many lanes may still look in this round. */
  #left = 0;
  /** How many may still be woken for it. */
  #toWake = 0;

  /**
   * True: gangs with reservations look for victims, too. False: nothing has changed since all of them looked in vain,
   * but that other gangs wait.
   */
  includeReservations = true;

  /** True if lanes are left whose turn has not come. */
  get areLeft(): boolean {
    return this.#due.size + this.#later.size > 0;
  }

  #add(lane: Lane): void {
    if (!this.#due.has(lane)) this.#later.add(lane);
  }

  #has(lane: Lane): boolean {
    return this.#due.has(lane) || this.#later.has(lane);
  }

  #delete(lane: Lane): boolean {
    return this.#due.delete(lane) || this.#later.delete(lane);
  }

  /**
   * Lets a lane look again in the next round, because in this one others were given something before it looked, which
   * they may lose again.
   */
  addAgain(lane: Lane): void {
    this.#again.add(lane);
  }

  addAll({ restless }: Pick<GangLines, "restless">): void {
    for (const lane of restless) this.#add(lane);
  }

  /** Wakes the lanes that come next: those of one queue after those of another, each queue's in their order. */
  begin(lines: GangLines, { max, nowMs }: { readonly max: number; readonly nowMs: number }): void {
    for (const lane of this.#again) this.#add(lane);
    this.#again.clear();
    this.#left = max;
    this.#toWake = max;
    this.#wakeDue(lines, nowMs);
    if (this.#due.size > 0) return;
    [this.#due, this.#later] = [this.#later, this.#due];
    this.#wakeDue(lines, nowMs);
  }

  #wakeDue(lines: GangLines, nowMs: number): void {
    for (const first of this.#due) {
      if (this.#toWake <= 0) return;
      if (first.entries.length === 0) this.#due.delete(first);
      else this.#wakeIn(first.line, lines, nowMs);
    }
  }

  #wakeIn(line: Line, lines: GangLines, nowMs: number): void {
    for (const lane of lanesInOrder(line, nowMs)) {
      if (this.#toWake <= 0) return;
      if (this.#due.has(lane)) this.#wake(lane, lines);
    }
  }

  /** Lets the restless ones of some lanes look in this round, or in later ones if this one has enough that look. */
  addNow(lanes: Iterable<Lane>, lines: GangLines, test: (lane: Lane) => boolean): void {
    for (const lane of lanes) {
      if (lane.restless === null) continue;
      const isFull = this.#toWake <= 0;
      if ((isFull && this.#has(lane)) || !test(lane)) continue;
      if (isFull) this.#add(lane);
      else this.#wake(lane, lines);
    }
  }

  /** Notes that a lane that looked has found victims. */
  noteFound(): void {
    this.#left -= FOUND_COST - 1;
  }

  #wake(lane: Lane, lines: GangLines): void {
    this.#delete(lane);
    lane.maySearch = true;
    lines.wake(lane);
    this.#toWake -= 1;
  }

  /** True if a lane looks now. False: nothing has changed since it looked last, or its turn comes in a later round. */
  take(lane: Lane): boolean {
    if (this.#delete(lane)) lane.maySearch = true;
    if (!lane.maySearch) return false;
    if (this.#left > 0) {
      this.#left -= 1;
      return true;
    }
    lane.maySearch = false;
    this.#add(lane);
    return false;
  }
}
