import type { Job } from "../core/job/job.ts";
import type { LoggedChange, LogPlace, WatchItem } from "../core/job/request/event-log.ts";
import type { JobFilter } from "../core/job/request/filter.ts";
import { encodeCursor } from "./cursor.ts";
import { type SelectedChange, select } from "./selection.ts";

/** Where a stream is in the log, and which entries its snapshot already contains. */
export type StreamPlace = {
  readonly incarnation: string;
  position: number;
  /** The position of the last cursor that was sent. */
  sent: number;
  /** By job uid: the snapshot contains entries up to this version, although they got their positions after it. */
  readonly ahead: Map<string, number>;
  /** The snapshot's bookmark waits until the entries in `ahead` have passed: a resume must not repeat them. */
  owesBookmark: boolean;
};

export function placeAt({ incarnation, position }: LogPlace): StreamPlace {
  return { incarnation, position, sent: position, ahead: new Map(), owesBookmark: false };
}

/** True if the snapshot contains this version of the job. */
export function snapshotHas({ ahead }: StreamPlace, { uid, version }: Job): boolean {
  return version <= (ahead.get(uid) ?? 0);
}

/** Notes that an entry has passed. Returns true once every entry that the snapshot contains has. */
export function settle({ ahead }: StreamPlace, { uid, version }: Job): boolean {
  if (version >= (ahead.get(uid) ?? Number.POSITIVE_INFINITY)) ahead.delete(uid);
  return ahead.size === 0;
}

/** Lets entries pass. Returns the changes that the filter selects and the snapshot lacks. */
export function newChanges(
  place: StreamPlace,
  entries: readonly LoggedChange[],
  filter: JobFilter,
): readonly SelectedChange[] {
  return entries.flatMap((entry) => {
    const change = select(entry, { filter, incarnation: place.incarnation });
    const isNew = change !== null && !snapshotHas(place, entry.job);
    settle(place, entry.job);
    return isNew ? [change] : [];
  });
}

export function bookmark(place: StreamPlace): WatchItem {
  place.sent = place.position;
  place.owesBookmark = false;
  return { type: "BOOKMARK", cursor: sentCursor(place) };
}

/** The cursor from which a client continues after what it was sent. */
export function sentCursor({ incarnation, sent }: StreamPlace): string {
  return encodeCursor({ incarnation, position: sent });
}
