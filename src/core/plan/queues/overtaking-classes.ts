import type { GangClass } from "./records.ts";

/** Gang classes by what lets their gangs overtake a reservation: their priority, or that their end is known. */
export class OvertakingClasses {
  readonly #byPriority = new Map<number, Set<GangClass>>();
  readonly #ending = new Set<GangClass>();

  /** Adds a gang class with its first gang. All gangs of a class are alike in this. */
  add(gangClass: GangClass): void {
    const classes = this.#byPriority.get(gangClass.priority) ?? new Set<GangClass>();
    this.#byPriority.set(gangClass.priority, classes);
    classes.add(gangClass);
    const gang = gangClass.gangs[0]?.facts;
    if (gang?.backfill === true || gang?.maxRuntimeMs !== undefined) this.#ending.add(gangClass);
  }

  delete(gangClass: GangClass): void {
    const classes = this.#byPriority.get(gangClass.priority);
    classes?.delete(gangClass);
    if (classes?.size === 0) this.#byPriority.delete(gangClass.priority);
    this.#ending.delete(gangClass);
  }

  /** The gang classes whose gangs may overtake a reservation of a gang with this priority. */
  *before(priority: number): Generator<GangClass> {
    for (const [one, classes] of this.#byPriority) if (one > priority) yield* classes;
    yield* this.#ending;
  }
}
