import type { GangLines } from "./gang-lines.ts";
import type { Request } from "./requests.ts";

/** So small a part of the gangs is woken at once. Of more, most would find that others have taken the room. */
const PART_WOKEN_AT_ONCE = 1 / 4;

/** Refused requests for which there may be room again, until a round has looked at the lanes that wait for them. */
export class HopefulRequests {
  readonly #all = new Set<Request>();

  get size(): number {
    return this.#all.size;
  }

  add(request: Request): void {
    request.hopeful = true;
    this.#all.add(request);
  }

  drop(request: Request): void {
    request.hopeful = false;
    this.#all.delete(request);
  }

  [Symbol.iterator](): Iterator<Request> {
    return this.#all.values();
  }

  /** Wakes the lanes that wait if they are few. Others are woken as their queues have turns. */
  wakeFew(lines: GangLines): void {
    let waiting = 0;
    for (const request of this.#all) waiting += request.waiting.size;
    if (waiting <= lines.entries.size * PART_WOKEN_AT_ONCE) this.wakeAll(lines);
  }

  wakeAll(lines: GangLines): void {
    for (const { waiting } of this.#all) for (const lane of waiting) lines.wake(lane);
    this.clear();
  }

  clear(): void {
    for (const request of this.#all) request.hopeful = false;
    this.#all.clear();
  }
}
