import type { Clock } from "../runtime/clock.ts";

/** What one stream has not passed on yet: bounded, filled by the tail, emptied by the stream. */
export type Inbox<T> = {
  /** Drops everything and stays `overflowed` once more than `capacity` items wait. */
  readonly push: (item: T) => void;
  /** Lets a waiting stream look without an item. */
  readonly nudge: () => void;
  readonly takeAll: () => readonly T[];
  readonly overflowed: () => boolean;
  /** Resolves true when something is there or was nudged, false after `delayMs` of silence. */
  readonly wait: (delayMs: number) => Promise<boolean>;
};

export function createInbox<T>(clock: Pick<Clock, "sleep">, capacity: number): Inbox<T> {
  let items: T[] = [];
  let nudged = false;
  let overflow = false;
  let wake = new AbortController();

  function nudge(): void {
    nudged = true;
    wake.abort();
  }

  return {
    push: (item) => {
      if (overflow) return;
      items.push(item);
      if (items.length > capacity) {
        items = [];
        overflow = true;
      }
      nudge();
    },
    nudge,
    takeAll: () => {
      const taken = items;
      items = [];
      nudged = false;
      return taken;
    },
    overflowed: () => overflow,
    wait: async (delayMs) => {
      if (!nudged) {
        wake = new AbortController();
        await clock.sleep(delayMs, wake.signal);
      }
      return nudged;
    },
  };
}
