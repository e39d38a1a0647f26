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
  /** Those that were told alone since it was filled: they look after all of these, also where their queue has turns. */
  #later = new Set<Lane>();
  /** The lanes that look again in the next round. */
  readonly #again = new Set<Lane>();
  /** How often all were told to look: with every change of what runs, so that it must not take long. */
  #told = 0;
  /** The same when those that had not looked since were gathered last. */
  #gathered = 0;
  /** The lanes that have had their turn since all were told to look last. */
  readonly #looked = new Set<Lane>();
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
    return this.#due.size + this.#later.size > 0 || this.#gathered < this.#told;
  }

  #has(lane: Lane): boolean {
    return this.#due.has(lane) || this.#later.has(lane) || this.#isBehind(lane);
  }

  /** True if all were told since a lane had its turn last, and it is not gathered yet. */
  #isBehind(lane: Lane): boolean {
    return this.#gathered < this.#told && lane.restless !== null && lane.toldUpTo < this.#told;
  }

  #add(lane: Lane): void {
    if (!this.#due.has(lane)) this.#later.add(lane);
  }

  #delete(lane: Lane): void {
    lane.toldUpTo = this.#told;
    this.#looked.add(lane);
    this.#due.delete(lane);
    this.#later.delete(lane);
  }

  /**
   * Lets a lane look again in the next round, because in this one others were given something before it looked, which
   * they may lose again.
   */
  addAgain(lane: Lane): void {
    this.#again.add(lane);
  }

  addAll({ restless }: Pick<GangLines, "restless">): void {
    if (restless.size === 0) return;
    this.#told += 1;
    this.#looked.clear();
  }

  /** Wakes the lanes that come next: those of one queue after those of another, each queue's in their order. */
  begin(lines: GangLines, { max, nowMs }: { readonly max: number; readonly nowMs: number }): void {
    for (const lane of this.#again) this.#add(lane);
    this.#again.clear();
    this.#left = max;
    this.#toWake = max;
    this.#wakeDue(lines, nowMs);
    if (this.#due.size > 0) return;
    this.#gather(lines);
    this.#wakeDue(lines, nowMs);
  }

  /** Makes all lanes due that have not looked since they were told, first those that have not for longest. */
  #gather({ restless }: GangLines): void {
    [this.#due, this.#later] = [this.#later, this.#due];
    if (this.#gathered === this.#told) return;
    const behind = [...restless].filter((lane) => this.#isBehind(lane));
    for (const lane of behind.sort((a, b) => a.toldUpTo - b.toldUpTo)) this.#due.add(lane);
    this.#gathered = this.#told;
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

  /** Lets restless lanes of a queue that pass a test look in this round, or later if this one has enough that look. */
  addNow(line: Line, lines: GangLines, test: (lane: Lane) => boolean): void {
    if (line.restless === 0) return;
    for (const lane of this.#mayAdd(line)) {
      const isFull = this.#toWake <= 0;
      if ((isFull && this.#has(lane)) || !test(lane)) continue;
      if (isFull) this.#add(lane);
      else this.#wake(lane, lines);
    }
  }

  /** The restless lanes of a queue that may look sooner than they would. */
  #mayAdd(line: Line): readonly Lane[] {
    // If this round has enough, all others that have not looked since they were told look later anyway.
    const isSettled = this.#toWake <= 0 && this.#gathered < this.#told;
    const lanes = isSettled ? [...this.#looked].filter((lane) => lane.line === line) : [...line.lanes.values()];
    return lanes.filter(({ restless }) => restless !== null);
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
    const looks = lane.maySearch || this.#has(lane);
    lane.maySearch = looks && this.#left > 0;
    if (lane.maySearch) {
      this.#delete(lane);
      this.#left -= 1;
    } else if (looks) {
      this.#add(lane);
    }
    return lane.maySearch;
  }
}
