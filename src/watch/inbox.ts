import type { Clock } from "../runtime/clock.ts";

/** The items that one stream has not sent yet, of a bounded number. The tail adds them; the stream takes them. */
export type Inbox<T> = {
  /** Drops all items and stays `overflowed` if more than `capacity` of them wait. */
  readonly push: (item: T) => void;
  /** Ends the stream's wait without an item. */
  readonly nudge: () => void;
  readonly takeAll: () => readonly T[];
  readonly overflowed: () => boolean;
  /** Resolves to true at an item or a nudge, and to false after `delayMs` without one. One wait at a time. */
  readonly wait: (delayMs: number) => Promise<boolean>;
  /** Frees the inbox's timer. No wait is under way, and none follows. */
  readonly close: () => void;
};

/** A reason of its own, because an abort without one makes an error with a stack each time. */
const CLOSED = "the inbox is closed";

/**
 * A busy stream waits a hundred times a second. All its waits share one timer, which at its end looks whether the wait
 * of that moment is over.
 */
export function createInbox<T>(clock: Pick<Clock, "sleep" | "monotonicMs">, capacity: number): Inbox<T> {
  let items: T[] = [];
  let nudged = false;
  let overflow = false;
  let waiting: { readonly untilMs: number; readonly end: (nudged: boolean) => void } | null = null;
  let isTiming = false;
  const closed = new AbortController();

  function end(isNudge: boolean): void {
    const ended = waiting;
    waiting = null;
    ended?.end(isNudge);
  }

  function nudge(): void {
    nudged = true;
    end(true);
  }

  async function time(): Promise<void> {
    isTiming = true;
    while (waiting !== null && !closed.signal.aborted) {
      const leftMs = waiting.untilMs - clock.monotonicMs();
      if (leftMs <= 0) end(false);
      else await clock.sleep(leftMs, closed.signal);
    }
    isTiming = false;
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
    wait: (delayMs) => {
      if (nudged) return Promise.resolve(true);
      const { promise, resolve } = Promise.withResolvers<boolean>();
      waiting = { untilMs: clock.monotonicMs() + delayMs, end: resolve };
      if (!isTiming) void time();
      return promise;
    },
    close: () => closed.abort(CLOSED),
  };
}
