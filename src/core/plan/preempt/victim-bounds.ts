import type { Fleet } from "../fit/fleet.ts";
import type { CapacityTry, ReservedCapacity, RunningAdmission } from "../queues/records.ts";
import type { Branch } from "../usage/branches.ts";
import { ownCandidates, Reaches } from "../victims/reach.ts";
import type { Preemptor, VictimSearch } from "../victims/running-gang.ts";
import { MostCapacity } from "./most-capacity.ts";
import type { RunningAdmissions } from "./running-admissions.ts";

/** Answers are kept for so many states of use. */
const STATES_MAX = 16;

/**
 * Tells what a search for victims can find at most, so that the planner skips searches that would find nobody. It is
 * made for the gangs that run, and lasts until others do. It counts protected gangs, and those that are chosen already.
 */
export class VictimBounds {
  readonly #search: VictimSearch;
  readonly #most: MostCapacity;
  /** By the version of the use. */
  readonly #reaches = new Map<number, Reaches>();
  #now: Reaches;

  constructor(fleet: Fleet, runningAdmissions: RunningAdmissions) {
    const leavesWith = (root: Branch, pools: ReadonlySet<string>) => runningAdmissions.leavesWith(root, pools, null);
    this.#search = { quota: fleet.quota, gangsOf: runningAdmissions.staying, leavesWith };
    this.#now = new Reaches(this.#search);
    this.#most = new MostCapacity(fleet, runningAdmissions);
  }

  /** The gangs of its own queue that a preemptor may have preempted. */
  own(search: VictimSearch, preemptor: Preemptor): readonly RunningAdmission[] {
    return ownCandidates(search, preemptor) as readonly RunningAdmission[];
  }

  /** Records the version of the use that holds from now on, until the next one, and what the round keeps beside it. */
  enter(useVersion: number, kept: readonly ReservedCapacity[]): void {
    const known = this.#reaches.get(useVersion);
    this.#now = known ?? new Reaches(this.#search);
    if (known !== undefined) return;
    if (this.#reaches.size >= STATES_MAX) this.#reaches.clear();
    this.#reaches.set(useVersion, this.#now);
    this.#most.noteBorrowed(kept);
  }

  /** The gangs that a search for a preemptor can take at most: its own ones, and those of other queues. */
  reached(preemptor: Preemptor, own: readonly RunningAdmission[]): readonly RunningAdmission[] {
    return this.#now.reached(preemptor, own) as readonly RunningAdmission[];
  }

  /** Those of a request's clusters in which it may fit, whoever is preempted of other queues and of these gangs. */
  triesWith(tries: readonly CapacityTry[], own: readonly RunningAdmission[]): readonly CapacityTry[] {
    return this.#most.triesWith(tries, own);
  }

  /** Records that gangs leave. */
  noteGone(gangs: readonly RunningAdmission[]): void {
    this.#most.noteGone(gangs);
  }
}
