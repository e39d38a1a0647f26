import type { FleetPlace, FleetRead, KnownFleet } from "../core/plan/facts/fleet-read.ts";
import { RoundStopped } from "../core/plan/model/round-bounds.ts";
import type { HeldByCaller } from "../core/plan/model/snapshot.ts";
import { Planner } from "../core/plan/planner.ts";
import { Semaphore } from "../runtime/semaphore.ts";
import type { FleetStore } from "./ports.ts";

/** How many entities are applied at once at most, by a follower that pauses. They take some milliseconds. */
const SLICE = 200;

type FollowerOptions = {
  /** True: a call that catches up ends by throwing `RoundStopped`. Omitted: never. */
  readonly isStopped?: () => boolean;
  /** Lets others have their turn while many changes are applied. Omitted: all are applied at once. */
  readonly pause?: () => Promise<unknown>;
};

/** Keeps a state in memory that follows the store: it loads everything once, and then reads what has changed. */
export class FleetFollower {
  readonly #store: Pick<FleetStore, "readFleet" | "gangsOf">;
  readonly #isStopped: () => boolean;
  readonly #pause: FollowerOptions["pause"];
  planner = new Planner();
  /** Some of the external callers that hold tokens now. */
  callers: readonly HeldByCaller[] = [];
  quotaEpoch = 0;
  #place: FleetPlace | null = null;
  readonly #known: KnownFleet = {
    versionOf: (uid) => this.planner.gangOf(uid)?.version ?? null,
    usedOf: (scope) => this.planner.usedOf(scope),
    cursorOf: (cluster) => this.planner.cursorOf(cluster),
  };

  readonly #turns = new Semaphore(1);
  /** Rises each time that everything is forgotten. */
  #loads = 0;

  constructor(store: Pick<FleetStore, "readFleet" | "gangsOf">, options: FollowerOptions = {}) {
    this.#store = store;
    this.#isStopped = options.isStopped ?? (() => false);
    this.#pause = options.pause;
  }

  /** Forgets everything, so that the next call, or one that runs, loads it anew. */
  forget(): void {
    this.#place = null;
    this.#loads += 1;
    this.planner = new Planner();
  }

  /**
   * Brings the state to the present. Returns true if it was loaded anew. Throws the errors of the store; a later call
   * continues. Calls run one after the other: each place is read from once.
   */
  catchUp(): Promise<boolean> {
    return this.#turns.run(() => this.#catchUp());
  }

  async #catchUp(): Promise<boolean> {
    let isNew = false;
    for (let more = true; more; ) {
      if (this.#isStopped()) throw new RoundStopped();
      const loads = this.#loads;
      const read = await this.#store.readFleet(this.#place, this.#known);
      if (loads !== this.#loads) continue;
      if (read.restarts) this.planner = new Planner();
      isNew ||= read.restarts;
      for (const _slice of this.#apply(read, this.planner)) await this.#pause?.();
      if (loads !== this.#loads) continue;
      this.#place = read.place;
      more = read.more;
    }
    return isNew;
  }

  /** Reads these gangs again. */
  async reread(jobUids: readonly string[]): Promise<void> {
    if (this.#place === null || jobUids.length === 0) return;
    for (const update of await this.#store.gangsOf(jobUids)) this.planner.apply({ kind: "gang", ...update });
  }

  /** Applies what was read, in slices. */
  *#apply({ changes, whole, callers, quotaEpoch, place }: FleetRead, planner: Planner): Generator<void> {
    for (const kind of whole) planner.keepOnly(kind, changes, place.serial);
    for (const [at, change] of changes.entries()) {
      if (at % SLICE === SLICE - 1) yield;
      const outcome = yield* planner.applyInSlices(change, SLICE);
      // The next read finds that nothing is known of the cluster, and reads its full list.
      if (outcome === "gap" && change.kind === "capacity") {
        yield* planner.applyInSlices({ kind: "unobserved", cluster: change.cluster }, SLICE);
      }
    }
    if (callers !== null) this.callers = callers;
    this.quotaEpoch = quotaEpoch;
  }
}
