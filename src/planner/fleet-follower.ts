import type { HeldByCaller } from "../core/plan/snapshot.ts";
import type { FleetPlace, FleetRead, KnownFleet } from "../core/plan/state/fleet-read.ts";
import { FleetState } from "../core/plan/state/fleet-state.ts";
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

  constructor(store: FleetStore) {
    this.#store = store;
  }

  /** Forgets everything, so that the next call loads it anew. */
  forget(): void {
    this.#place = null;
  }

  /**
   * Brings the state to the present. Returns true if it was loaded anew. Throws the errors of the store; a later call
   * continues.
   */
  async catchUp(): Promise<boolean> {
    let isNew = false;
    let read: FleetRead;
    do {
      read = await this.#store.readFleet(this.#place, this.#known);
      if (read.restarts) this.state = new FleetState();
      isNew ||= read.restarts;
      this.#apply(read);
      this.#place = read.place;
    } while (read.more);
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
