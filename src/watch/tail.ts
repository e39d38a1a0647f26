import type { LogEntry, WatchStore } from "./ports.ts";

/** So many entries are kept for streams that are a little behind; the others read the log themselves. */
const RING = 1_000;
const PAGE = 1_000;

/** Hears every entry after the position at which it began; `null`: the log has jumped, begin again. */
export type Listener = (entry: LogEntry | null) => void;

/** The end of the log, read once for all streams. */
export type Tail = {
  /** Reads what is new up to `head`; calls that overlap share the work. */
  readonly advance: (head: number) => Promise<void>;
  /**
   * From now on the listener hears every entry after `position`, those that are kept at once. Null where these are more than `backlogMax` or
   * not kept any more, or the tail is not there yet; the caller then reads the log itself. The function that comes back ends it.
   */
  readonly follow: (position: number, backlogMax: number, listener: Listener) => (() => void) | null;
};

export function createTail(store: Pick<WatchStore, "entriesAfter">): Tail {
  const listeners = new Set<Listener>();
  let ring: LogEntry[] = [];
  /** Null until the first head is known: what came before it is nobody's news. */
  let position: number | null = null;
  let reading: Promise<void> | null = null;

  function take(entries: readonly LogEntry[]): void {
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
