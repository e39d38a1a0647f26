import { firstWhere } from "../../../runtime/first-where.ts";
import type { KubeObject } from "./kube-object.ts";
import { keyOf } from "./kube-object.ts";

/** One change of one object. `before` is null for a creation. With `removed`, `object` is the last state. */
export type HistoryEvent = {
  readonly version: number;
  readonly resource: string;
  readonly object: KubeObject;
  readonly before: KubeObject | null;
  readonly removed: boolean;
};

/** How many changes a watch may fall behind before it gets 410. Enough for the lives of 1,000 pods. */
const EVENTS_MAX = 10_000;

/** The latest changes, as etcd keeps them until a compaction. Watches and lists of past versions read them. */
export class History {
  readonly #events: HistoryEvent[] = [];
  readonly #eventsMax: number;
  #floor: number;

  constructor(floor: number, eventsMax = EVENTS_MAX) {
    this.#floor = floor;
    this.#eventsMax = eventsMax;
  }

  /** The oldest version from which a watch or a list can start. */
  get floor(): number {
    return this.#floor;
  }

  add(event: HistoryEvent): void {
    this.#events.push(event);
    // Cuts at twice the bound, so that a change costs the same on average for every bound.
    if (this.#events.length > 2 * this.#eventsMax) this.#cut(this.#events.length - this.#eventsMax);
  }

  /** Forgets everything up to and including `version`. */
  compact(version: number): void {
    this.#cut(this.#firstAfter(version));
    this.#floor = Math.max(this.#floor, version);
  }

  /** Returns the changes after `version`, oldest first. Null: some of them are forgotten. */
  after(version: number): readonly HistoryEvent[] | null {
    return version < this.#floor ? null : this.#events.slice(this.#firstAfter(version));
  }

  /** Returns a resource's objects at `version`, by undoing later changes. Null: some of these are forgotten. */
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
    return firstWhere(0, this.#events.length, (at) => (this.#events[at]?.version ?? 0) > version);
  }
}
