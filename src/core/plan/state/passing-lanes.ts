import type { Lane } from "./gang-lines.ts";

/** Lanes by what lets their gangs pass a reservation: their priority, or that their end is known. */
export class PassingLanes {
  readonly #byPriority = new Map<number, Set<Lane>>();
  readonly #ending = new Set<Lane>();

  /** Adds a lane with its first gang. All gangs of a lane are alike in this. */
  add(lane: Lane): void {
    const lanes = this.#byPriority.get(lane.priority) ?? new Set<Lane>();
    this.#byPriority.set(lane.priority, lanes);
    lanes.add(lane);
    const gang = lane.entries[0]?.gang;
    if (gang?.backfill === true || gang?.maxRuntimeMs !== undefined) this.#ending.add(lane);
  }

  delete(lane: Lane): void {
    const lanes = this.#byPriority.get(lane.priority);
    lanes?.delete(lane);
    if (lanes?.size === 0) this.#byPriority.delete(lane.priority);
    this.#ending.delete(lane);
  }

  /** The lanes whose gangs may pass a reservation of a gang with this priority. */
  *before(priority: number): Generator<Lane> {
    for (const [one, lanes] of this.#byPriority) if (one > priority) yield* lanes;
    yield* this.#ending;
  }
}
