import { ownCandidates, Reaches } from "../preempt/reach.ts";
import type { Taker, VictimSearch } from "../preempt/running-gang.ts";
import type { Branch } from "./branches.ts";
import { MostRoom } from "./most-room.ts";
import type { RoomTry } from "./requests.ts";
import type { Runner, Runners } from "./runners.ts";
import type { Parts } from "./state-parts.ts";

/** Answers are kept for so many states of use. */
const STATES_MAX = 16;

/**
 * Tells what a search for victims can find at most, so that the planner skips searches that would find nobody. It is
 * made for the gangs that run, and lasts until others do. It counts protected gangs, and those that are chosen already.
 */
export class VictimBounds {
  readonly #search: VictimSearch;
  readonly #most: MostRoom;
  /** By the version of the use. */
  readonly #reaches = new Map<number, Reaches>();
  #now: Reaches;

  constructor(parts: Parts, runners: Runners) {
    const leavesWith = (root: Branch, pools: ReadonlySet<string>) => runners.leavesWith(root, pools, null);
    this.#search = { quota: parts.quota, gangsOf: runners.staying, leavesWith };
    this.#now = new Reaches(this.#search);
    this.#most = new MostRoom(parts, runners);
  }

  /** The gangs of its own queue that a taker may have preempted. */
  own(search: VictimSearch, taker: Taker): readonly Runner[] {
    return ownCandidates(search, taker) as readonly Runner[];
  }

  /** Notes the version of the use that holds from now on, until the next one. */
  enter(useVersion: number): void {
    const known = this.#reaches.get(useVersion);
    this.#now = known ?? new Reaches(this.#search);
    if (known !== undefined) return;
    if (this.#reaches.size >= STATES_MAX) this.#reaches.clear();
    this.#reaches.set(useVersion, this.#now);
    this.#most.noteBorrowed();
  }

  /** The gangs that a search for a taker can take at most: its own ones, and those of other queues. */
  reached(taker: Taker, own: readonly Runner[]): readonly Runner[] {
    return this.#now.reached(taker, own) as readonly Runner[];
  }

  /** Those of a request's clusters in which it may fit, whoever gives way of other queues and of these gangs. */
  roomsWith(rooms: readonly RoomTry[], own: readonly Runner[]): readonly RoomTry[] {
    return this.#most.roomsWith(rooms, own);
  }

  /** Notes that gangs leave. */
  noteGone(gangs: readonly Runner[]): void {
    this.#most.noteGone(gangs);
  }
}
