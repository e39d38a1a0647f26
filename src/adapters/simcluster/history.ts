import type { KubeObject } from "./kube-object.ts";
import { keyOf } from "./kube-object.ts";

/** One change to one object; `before` is null for a creation, `removed` says that `object` is its last state. */
export type HistoryEvent = {
  readonly version: number;
  readonly resource: string;
  readonly object: KubeObject;
  readonly before: KubeObject | null;
  readonly removed: boolean;
};

/** How many changes are remembered: what a watch may be behind before it gets 410. A thousand pods' whole lives fit. */
const EVENTS_MAX = 10_000;

/** The changes of late, as etcd keeps them until it is compacted. */
export class History {
  readonly #events: HistoryEvent[] = [];
  readonly #eventsMax: number;
  #floor: number;

  constructor(floor: number, eventsMax = EVENTS_MAX) {
    this.#floor = floor;
    this.#eventsMax = eventsMax;
  }

  /** The oldest version that a watch or a list may start from. */
  get floor(): number {
    return this.#floor;
  }

  add(event: HistoryEvent): void {
    this.#events.push(event);
    // Twice the bound before cutting, so that a change costs the same on average however many are kept.
    if (this.#events.length > 2 * this.#eventsMax) this.#cut(this.#events.length - this.#eventsMax);
  }

  /** Forgets everything up to and including `version`. */
  compact(version: number): void {
    this.#cut(this.#firstAfter(version));
    this.#floor = Math.max(this.#floor, version);
  }

  /** The changes after `version`, oldest first; null if they are not all remembered any more. */
  after(version: number): readonly HistoryEvent[] | null {
    return version < this.#floor ? null : this.#events.slice(this.#firstAfter(version));
  }

  /** What the objects of a resource were at `version`, undone from what they are now; null if that is too long ago. */
  objectsAt(resource: string, version: number, now: Iterable<KubeObject>): KubeObject[] | null {
    const later = this.after(version);
    if (later === null) return null;
    const objects = new Map<string, KubeObject>();
    for (const object of now) objects.set(keyOf(object.metadata), object);
    for (const event of later.toReversed()) {
      if (event.resource !== resource) continue;
      if (event.before === null) objects.delete(keyOf(event.object.metadata));
      else objects.set(keyOf(event.object.metadata), event.before);
    }
    return [...objects.values()];
  }

  #cut(count: number): void {
    const last = this.#events.splice(0, count).at(-1);
    if (last !== undefined) this.#floor = last.version;
  }

  #firstAfter(version: number): number {
    let low = 0;
    let high = this.#events.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.#events[middle]?.version ?? 0) > version) high = middle;
      else low = middle + 1;
    }
    return low;
  }
}
