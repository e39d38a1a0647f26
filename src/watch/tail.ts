import type { LoggedChange } from "../core/job/event-log.ts";
import type { WatchStore } from "./ports.ts";

/** Entries that are kept for streams that are a little behind. Streams further behind read the log themselves. */
const RING = 1_000;
const PAGE = 1_000;

/** Gets every entry after the position at which it began. Null: the log has a gap, and the stream begins again. */
export type TailListener = (entry: LoggedChange | null) => void;

/** Reads the end of the log once for all streams of this process. */
export type Tail = {
  /** Reads new entries up to `head`. Calls that overlap share the work. */
  readonly advance: (head: number) => Promise<void>;
  /**
   * Gives the listener every entry after `position`: kept entries at once, new ones when they come. Returns the
   * function that ends this. Null if the entries are more than `backlogMax` or no longer kept, or if the tail has not
   * come to the position yet: then the caller reads the log itself.
   */
  readonly follow: (position: number, backlogMax: number, listener: TailListener) => (() => void) | null;
};

export function createTail(store: Pick<WatchStore, "entriesAfter">): Tail {
  const listeners = new Set<TailListener>();
  let ring: LoggedChange[] = [];
  /** Null until the first head is known. Entries before it are not new to any stream. */
  let position: number | null = null;
  let reading: Promise<void> | null = null;

  function take(entries: readonly LoggedChange[]): void {
    for (const entry of entries) {
      ring.push(entry);
      position = entry.position;
      for (const listener of [...listeners]) listener(entry);
    }
    if (ring.length > RING * 2) ring = ring.slice(-RING);
  }

  function jump(head: number): void {
    ring = [];
    position = head;
    for (const listener of [...listeners]) listener(null);
  }

  async function read(head: number): Promise<void> {
    while (position !== null && position < head) {
      const { entries, gap } = await store.entriesAfter(position, PAGE);
      if (gap || entries.length === 0) return jump(head);
      take(entries);
    }
  }

  return {
    advance: async (head) => {
      while (reading !== null) await reading;
      position ??= head;
      reading = read(head).finally(() => {
        reading = null;
      });
      await reading;
    },
    follow: (from, backlogMax, listener) => {
      if (position === null || from > position || position - from > backlogMax) return null;
      const oldest = ring[0]?.position ?? position + 1;
      if (from < oldest - 1) return null;
      for (const entry of ring) if (entry.position > from) listener(entry);
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
}
