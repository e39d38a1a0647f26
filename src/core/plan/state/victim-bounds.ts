import { ownCandidates, Reaches } from "../preempt/reach.ts";
import type { RunningGang, Taker, VictimSearch } from "../preempt/running-gang.ts";
import { MostRoom } from "./most-room.ts";
import type { RoomTry } from "./requests.ts";
import type { Runner, Runners } from "./runners.ts";
import type { Parts } from "./state-parts.ts";

/** Answers are kept for so many states of use. */
const STATES_MAX = 16;

/** What a search for victims can find at most, during one round: it saves searches that find nobody. */
export class VictimBounds {
  readonly #parts: Parts;
  readonly #most: MostRoom;
  readonly #reaches = new Map<string, Reaches>();

  constructor(parts: Parts, runners: Runners) {
    this.#parts = parts;
    this.#most = new MostRoom(parts, runners);
  }

  /** The gangs of its own queue that a taker may have preempted. */
  own(search: VictimSearch, taker: Taker): readonly Runner[] {
    return ownCandidates(search, taker) as readonly Runner[];
  }

  /** False: it takes nothing of other queues in a state of use, which `state` names. */
  reachesOthers(state: string, search: VictimSearch, of: { taker: Taker; own: readonly RunningGang[] }): boolean {
    return this.#reachesIn(state).reachesOthers(search, of.taker, of.own);
  }

  /** Those of a request's clusters in which it may fit, whoever gives way of other queues and of these gangs. */
  roomsWith(state: string, rooms: readonly RoomTry[], own: readonly Runner[]): readonly RoomTry[] {
    this.#reachesIn(state);
    return this.#most.roomsWith(rooms, own);
  }

  /** Notes that gangs leave. */
  noteGone(gangs: readonly Runner[]): void {
    this.#most.noteGone(gangs);
  }

  #reachesIn(state: string): Reaches {
    const known = this.#reaches.get(state);
    if (known !== undefined) return known;
    if (this.#reaches.size >= STATES_MAX) this.#reaches.clear();
    const made = new Reaches(this.#parts.quota);
    this.#reaches.set(state, made);
    this.#most.noteBorrowed();
    return made;
  }
}
