import { ownCandidates, Reaches } from "../preempt/reach.ts";
import type { Taker, VictimSearch } from "../preempt/running-gang.ts";
import type { MostRoom } from "./most-room.ts";
import type { RoomTry } from "./requests.ts";
import type { Runner, Runners } from "./runners.ts";
import type { Parts } from "./state-parts.ts";

/** Answers are kept for so many states of use. */
const STATES_MAX = 16;

/** What a search for victims can find at most, during one round: it saves searches that find nobody. */
export class VictimBounds {
  readonly #parts: Parts;
  readonly #runners: Runners;
  readonly #most: MostRoom;
  readonly #reaches = new Map<string, Reaches>();
  #now: Reaches;

  constructor(parts: Parts) {
    const { runners, mostRoom } = parts.running();
    this.#parts = parts;
    this.#runners = runners;
    this.#most = mostRoom;
    this.#now = this.#newReaches();
  }

  /** The gangs of its own queue that a taker may have preempted. */
  own(search: VictimSearch, taker: Taker): readonly Runner[] {
    return ownCandidates(search, taker) as readonly Runner[];
  }

  /** Notes the state of use that holds from now on, until the next one. `name` tells it from others of the round. */
  enter(name: string): void {
    const known = this.#reaches.get(name);
    this.#now = known ?? this.#newReaches();
    if (known !== undefined) return;
    if (this.#reaches.size >= STATES_MAX) this.#reaches.clear();
    this.#reaches.set(name, this.#now);
    this.#most.noteBorrowed();
  }

  /** False: a taker takes nothing of other queues now, also once these gangs of its own have gone. */
  reachesOthers(taker: Taker, own: readonly Runner[]): boolean {
    return this.#now.reachesOthers(taker, own);
  }

  /** Those of a request's clusters in which it may fit, whoever gives way of other queues and of these gangs. */
  roomsWith(rooms: readonly RoomTry[], own: readonly Runner[]): readonly RoomTry[] {
    return this.#most.roomsWith(rooms, own);
  }

  /** Notes that gangs leave. */
  noteGone(gangs: readonly Runner[]): void {
    this.#most.noteGone(gangs);
  }

  #newReaches(): Reaches {
    return new Reaches({ quota: this.#parts.quota, gangsOf: this.#runners.staying });
  }
}
