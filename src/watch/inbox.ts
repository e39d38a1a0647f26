import type { Clock } from "../runtime/clock.ts";

/** The items that one stream has not sent yet, of a bounded number. The tail adds them; the stream takes them. */
export type Inbox<T> = {
  /** Drops all items and stays `overflowed` if more than `capacity` of them wait. */
  readonly push: (item: T) => void;
  /** Ends the stream's wait without an item. */
  readonly nudge: () => void;
  readonly takeAll: () => readonly T[];
  readonly overflowed: () => boolean;
  /** Resolves to true at an item or a nudge, and to false after `delayMs` without one. */
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
