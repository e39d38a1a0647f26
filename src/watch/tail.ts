import type { LoggedChange, LogPlace } from "../core/job/request/event-log.ts";
import type { JobFilter } from "../core/job/request/filter.ts";
import { getOrCreate } from "../runtime/get-or-create.ts";
import { canonicalJson } from "../runtime/json.ts";
import type { WatchStore } from "./ports.ts";
import { type SelectedChange, select } from "./selection.ts";

/** Entries that are kept for streams that are a little behind. Streams further behind read the log themselves. */
const RING = 1_000;
const PAGE = 1_000;

/** A stream that follows the tail. Everything is called in the order of the log. */
export type TailReader = {
  readonly filter: JobFilter;
  /** Gets every change that the filter selects, after the position at which the reader began. */
  readonly take: (change: SelectedChange) => void;
  /** Gets every entry, selected or not, until it returns true. */
  readonly settle: (entry: LoggedChange) => boolean;
  /** The tail has come to this position. */
  readonly moved: (position: number) => void;
  /** The log has a gap, and the stream begins again. */
  readonly jumped: () => void;
};

/** Reads the end of the log once for all streams of this process. */
export type Tail = {
  /** Says that a stream has begun, and returns the function that ends this. Nothing is read without streams. */
  readonly attend: () => () => void;
  /** Reads new entries up to `head`. Calls that overlap share the work. */
  readonly advance: (head: LogPlace) => Promise<void>;
  /** The position that every reader has come to. */
  readonly position: () => number;
  /**
   * Gives the reader every entry after a place: kept entries at once, new ones when they come. Returns the function
   * that ends this. Null if the entries are more than `backlogMax` or no longer kept, if the tail has not come to the
   * place yet, or if it is in another incarnation of the log: then the caller reads the log itself.
   */
  readonly follow: (from: LogPlace, backlogMax: number, reader: TailReader) => (() => void) | null;
};

/** Readers with the same filter: it is asked once for each entry, however many they are. */
type Group = { readonly filter: JobFilter; readonly readers: Set<TailReader> };

function tellGroup(entry: LoggedChange, { filter, readers }: Group, incarnation: string): void {
  const selected = select(entry, { filter, incarnation });
  if (selected === null) return;
  for (const reader of readers) reader.take(selected);
}

export function createTail(store: Pick<WatchStore, "entriesAfter">): Tail {
  const groups = new Map<string, Group>();
  const unsettled = new Set<TailReader>();
  let ring: LoggedChange[] = [];
  /** Null until the first head is known. Entries before it are not new to any stream. */
  let place: LogPlace | null = null;
  let reading: Promise<void> | null = null;
  let streams = 0;

  function take(entries: readonly LoggedChange[], incarnation: string): void {
    for (const entry of entries) {
      ring.push(entry);
      place = { incarnation, position: entry.position };
      tell(entry, incarnation);
    }
    const last = entries.at(-1)?.position ?? 0;
    forEach((reader) => reader.moved(last));
    if (ring.length > RING * 2) ring = ring.slice(-RING);
  }

  function tell(entry: LoggedChange, incarnation: string): void {
    for (const group of groups.values()) tellGroup(entry, group, incarnation);
    for (const reader of unsettled) if (reader.settle(entry)) unsettled.delete(reader);
  }

  function forEach(act: (reader: TailReader) => void): void {
    for (const { readers } of groups.values()) for (const reader of readers) act(reader);
  }

  function jump(head: LogPlace): void {
    ring = [];
    place = head;
    forEach((reader) => reader.jumped());
  }

  async function read(head: LogPlace): Promise<void> {
    if (place?.incarnation !== head.incarnation) return jump(head);
    while (place.position < head.position) {
      if (streams === 0) return jump(head);
      const { entries, gap } = await store.entriesAfter(place, PAGE);
      if (gap || entries.length === 0) return jump(head);
      take(entries, head.incarnation);
    }
  }

  /** Gives a reader the kept entries after a position. */
  function catchUp(from: LogPlace, reader: TailReader): void {
    let isSettled = false;
    for (const entry of ring) {
      if (entry.position <= from.position) continue;
      const selected = select(entry, { filter: reader.filter, incarnation: from.incarnation });
      if (selected !== null) reader.take(selected);
      isSettled = reader.settle(entry);
    }
    if (!isSettled) unsettled.add(reader);
  }

  function join(reader: TailReader): () => void {
    const key = canonicalJson(reader.filter);
    const group = getOrCreate(groups, key, () => ({ filter: reader.filter, readers: new Set() }));
    group.readers.add(reader);
    return () => {
      unsettled.delete(reader);
      group.readers.delete(reader);
      if (group.readers.size === 0 && groups.get(key) === group) groups.delete(key);
    };
  }

  return {
    attend: () => {
      streams += 1;
      return () => {
        streams -= 1;
      };
    },
    advance: async (head) => {
      while (reading !== null) await reading;
      place ??= head;
      reading = read(head).finally(() => {
        reading = null;
      });
      await reading;
    },
    position: () => place?.position ?? 0,
    follow: (from, backlogMax, reader) => {
      if (place === null || from.incarnation !== place.incarnation) return null;
      const { position } = place;
      if (from.position > position || position - from.position > backlogMax) return null;
      const oldest = ring[0]?.position ?? position + 1;
      if (from.position < oldest - 1) return null;
      catchUp(from, reader);
      return join(reader);
    },
  };
}
