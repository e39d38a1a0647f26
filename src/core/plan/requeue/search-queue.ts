/**
 * Whose turn it is to look for gangs that may be preempted. A search costs more than all else that a round does for a
 * gang, so a round searches for a bounded number of gangs, and the next rounds for the others.
 */

import { noteSearched, type ReevaluatedClasses, requeue, setSearch } from "../queues/class-state.ts";
import { classesInOrder } from "../queues/class-walk.ts";
import type { GangClass, GangQueue } from "../queues/records.ts";

/** A search that finds victims costs about as much as so many that find none. */
const FOUND_COST = 5;

/** How many gang classes may still look for victims in a round, and how many may still be woken for it. */
export type SearchesLeft = { searches: number; wakes: number };

export class SearchQueue {
  /** The gang classes that are to look, in the order in which they became due. It only shrinks until it is empty. */
  #due = new Set<GangClass>();
  /** Those that became due alone since it was filled: they look after all of these, also within one queue. */
  #later = new Set<GangClass>();
  /** The gang classes that look again in the next round. */
  readonly #again = new Set<GangClass>();
  /** How often all were requested to look: with every change of what runs, so that it must not take long. */
  #requested = 0;
  /** The same when those that had not looked since were gathered last. */
  #gathered = 0;
  /** The gang classes that have looked since all were requested to last. */
  readonly #looked = new Set<GangClass>();

  /**
   * True: gangs with reservations look for victims, too. False: nothing has changed since all of them looked in vain,
   * but that other gangs wait.
   */
  includeReservations = true;

  /** True if gang classes are left that have not looked. */
  get areLeft(): boolean {
    return this.#due.size + this.#later.size > 0 || this.#gathered < this.#requested;
  }

  #has(gangClass: GangClass): boolean {
    return this.#due.has(gangClass) || this.#later.has(gangClass) || this.#isBehind(gangClass);
  }

  /** True if all were requested since a gang class looked last, and it is not gathered yet. */
  #isBehind(gangClass: GangClass): boolean {
    return (
      this.#gathered < this.#requested && gangClass.reevaluated !== null && gangClass.searchedUpTo < this.#requested
    );
  }

  #add(gangClass: GangClass): void {
    if (!this.#due.has(gangClass)) this.#later.add(gangClass);
  }

  #delete(gangClass: GangClass): void {
    noteSearched(gangClass, this.#requested);
    this.#looked.add(gangClass);
    this.#due.delete(gangClass);
    this.#later.delete(gangClass);
  }

  /**
   * Lets a gang class look again in the next round, because in this one others were given something before it looked,
   * which they may lose again.
   */
  addAgain(gangClass: GangClass): void {
    this.#again.add(gangClass);
  }

  addAll({ reevaluated }: Pick<ReevaluatedClasses, "reevaluated">): void {
    if (reevaluated.size === 0) return;
    this.#requested += 1;
    this.#looked.clear();
  }

  /** Wakes the gang classes that come next: those of one queue after those of another, each queue's in their order. */
  begin(
    queues: Pick<ReevaluatedClasses, "reevaluated">,
    { left, nowMs }: { readonly left: SearchesLeft; readonly nowMs: number },
  ): void {
    for (const gangClass of this.#again) this.#add(gangClass);
    this.#again.clear();
    this.#wakeDue(left, nowMs);
    if (this.#due.size > 0) return;
    this.#gather(queues);
    this.#wakeDue(left, nowMs);
  }

  /** Makes all gang classes due that have not looked since all were requested to, the longest waiting ones first. */
  #gather({ reevaluated }: Pick<ReevaluatedClasses, "reevaluated">): void {
    [this.#due, this.#later] = [this.#later, this.#due];
    if (this.#gathered === this.#requested) return;
    const behind = [...reevaluated].filter((gangClass) => this.#isBehind(gangClass));
    for (const gangClass of behind.sort((a, b) => a.searchedUpTo - b.searchedUpTo)) this.#due.add(gangClass);
    this.#gathered = this.#requested;
  }

  #wakeDue(left: SearchesLeft, nowMs: number): void {
    for (const first of this.#due) {
      if (left.wakes <= 0) return;
      if (first.gangs.length === 0) this.#due.delete(first);
      else this.#wakeIn(first.gangQueue, left, nowMs);
    }
  }

  #wakeIn(gangQueue: GangQueue, left: SearchesLeft, nowMs: number): void {
    for (const gangClass of classesInOrder(gangQueue, nowMs)) {
      if (left.wakes <= 0) return;
      if (this.#due.has(gangClass)) this.#wake(gangClass, left);
    }
  }

  /**
   * Lets re-evaluated gang classes of a queue that pass a test look in this round, or later if this one has enough that
   * look.
   */
  addNow(gangQueue: GangQueue, left: SearchesLeft, test: (gangClass: GangClass) => boolean): void {
    if (gangQueue.reevaluated === 0) return;
    for (const gangClass of this.#mayAdd(gangQueue, left)) {
      const isFull = left.wakes <= 0;
      if ((isFull && this.#has(gangClass)) || !test(gangClass)) continue;
      if (isFull) this.#add(gangClass);
      else this.#wake(gangClass, left);
    }
  }

  /** The re-evaluated gang classes of a queue that may look sooner than they would. */
  #mayAdd(gangQueue: GangQueue, left: SearchesLeft): readonly GangClass[] {
    // If this round has enough, all others that have not looked since they were requested to look later anyway.
    const isSettled = left.wakes <= 0 && this.#gathered < this.#requested;
    const classes = isSettled
      ? [...this.#looked].filter((gangClass) => gangClass.gangQueue === gangQueue)
      : [...gangQueue.classes.values()];
    return classes.filter(({ reevaluated }) => reevaluated !== null);
  }

  /** Records that a gang class that looked has found victims. */
  noteFound(left: SearchesLeft): void {
    left.searches -= FOUND_COST - 1;
  }

  #wake(gangClass: GangClass, left: SearchesLeft): void {
    this.#delete(gangClass);
    requeue(gangClass, "search");
    left.wakes -= 1;
  }

  /**
   * True if a gang class looks now. False: nothing has changed since it looked last, or its turn comes in a later
   * round.
   */
  mayTake(gangClass: GangClass, left: SearchesLeft): boolean {
    return left.searches > 0 && this.#looks(gangClass);
  }

  #looks(gangClass: GangClass): boolean {
    return gangClass.maySearch || this.#has(gangClass);
  }

  /** Takes a class's turn if it may look now; else its turn comes in a later round, if something has changed for it. */
  take(gangClass: GangClass, left: SearchesLeft): void {
    const looks = this.#looks(gangClass);
    const takes = looks && left.searches > 0;
    setSearch(gangClass, takes);
    if (takes) {
      this.#delete(gangClass);
      left.searches -= 1;
    } else if (looks) {
      this.#add(gangClass);
    }
  }
}
