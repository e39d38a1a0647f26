import type { HeldByCaller } from "../core/plan/snapshot.ts";
import type { FleetPlace, FleetRead, KnownFleet } from "../core/plan/state/fleet-read.ts";
import { FleetState } from "../core/plan/state/fleet-state.ts";
import { RoundStopped } from "../core/plan/state/queue-turns.ts";
import { Semaphore } from "../runtime/semaphore.ts";
import type { FleetStore } from "./ports.ts";

/** Keeps a state in memory that follows the store: it loads everything once, and then reads what has changed. */
export class FleetFollower {
  readonly #store: FleetStore;
  state = new FleetState();
  /** Some of the external callers that hold tokens now. */
  callers: readonly HeldByCaller[] = [];
  quotaEpoch = 0;
  #place: FleetPlace | null = null;
  readonly #known: KnownFleet = {
    versionOf: (uid) => this.state.parts.lines.entries.get(uid)?.gang.version ?? null,
    usedOf: (scope) => this.state.parts.quota.sumOf(scope),
    cursorOf: (cluster) => this.state.cursorOf(cluster),
  };

  readonly #isStopped: () => boolean;
  readonly #turns = new Semaphore(1);
  /** Rises each time that everything is forgotten. */
  #loads = 0;

  /** `isStopped` true: a call that catches up ends by throwing `RoundStopped`. Omitted: never. */
  constructor(store: FleetStore, { isStopped = () => false }: { readonly isStopped?: () => boolean } = {}) {
    this.#store = store;
    this.#isStopped = isStopped;
  }

  /** Forgets everything, so that the next call, or one that runs, loads it anew. */
  forget(): void {
    this.#place = null;
    this.#loads += 1;
    this.state = new FleetState();
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
      if (read.restarts) this.state = new FleetState();
      isNew ||= read.restarts;
      this.#apply(read);
      this.#place = read.place;
      more = read.more;
    }
    return isNew;
  }

  /** Reads these gangs again. */
  async reread(jobUids: readonly string[]): Promise<void> {
    if (this.#place === null) return;
    for (const update of await this.#store.gangsOf(jobUids)) this.state.apply({ kind: "gang", ...update });
  }

  #apply({ changes, whole, callers, quotaEpoch, place }: FleetRead): void {
    for (const kind of whole) this.state.keepOnly(kind, changes, place.serial);
    for (const change of changes) {
      // The next read finds that nothing is known of the cluster, and reads its full list.
      if (this.state.apply(change) !== "gap" || change.kind !== "capacity") continue;
      this.state.apply({ kind: "unobserved", cluster: change.cluster });
    }
    if (callers !== null) this.callers = callers;
    this.quotaEpoch = quotaEpoch;
  }
}
