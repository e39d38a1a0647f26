import type { FitClass } from "./fit-classes.ts";

/** Pods that were placed on a slot; below 0 they were taken off. */
export type PlacedOnSlot = { readonly slot: number; readonly fit: FitClass; readonly pods: number };

/** The placements on the nodes of a cluster in their order, so that the latest ones can be taken back. */
export class PlacementTrail {
  readonly #slots: number[] = [];
  readonly #fits: FitClass[] = [];
  readonly #pods: number[] = [];
  /** The states before each placement. */
  readonly #states: number[] = [];
  #made = 0;
  #state = 0;

  get length(): number {
    return this.#slots.length;
  }

  /** Names the state of the capacity: it is the same number only if the capacity is the same as then. */
  get state(): number {
    return this.#state;
  }

  add({ slot, fit, pods }: PlacedOnSlot): void {
    this.#slots.push(slot);
    this.#fits.push(fit);
    this.#pods.push(pods);
    this.#states.push(this.#state);
    this.#newState();
  }

  /** Takes the placements after a mark off the trail, the latest first. */
  takeBack(mark: number, move: (fit: FitClass, slot: number, pods: number) => void): void {
    while (this.#slots.length > mark) {
      const slot = this.#slots.pop() as number;
      this.#state = this.#states.pop() as number;
      move(this.#fits.pop() as FitClass, slot, this.#pods.pop() as number);
    }
  }

  after(mark: number): readonly PlacedOnSlot[] {
    const at = (place: number) => ({ slot: this.#slots[place] as number, pods: this.#pods[place] as number });
    return this.#fits.slice(mark).map((fit, place) => ({ fit, ...at(mark + place) }));
  }

  /** Forgets all placements: the capacity is another one. */
  clear(): void {
    this.#slots.length = 0;
    this.#fits.length = 0;
    this.#pods.length = 0;
    this.#states.length = 0;
    this.#newState();
  }

  #newState(): void {
    this.#made += 1;
    this.#state = this.#made;
  }
}
