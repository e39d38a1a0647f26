/** Serves clients that watch jobs: a snapshot, then every change of the jobs that match, with bounded buffers. */

import type { WatchItem, WatchRequest } from "../core/job/request/event-log.ts";
import { parseCursor } from "./cursor.ts";
import { createInbox, type Inbox } from "./inbox.ts";
import { bookmark, newChanges, placeAt, type StreamPlace, sentCursor, settle, snapshotHas } from "./place.ts";
import type { SelectedChange } from "./selection.ts";
import { snapshot } from "./snapshot.ts";
import type { StreamOptions, StreamParts } from "./stream-parts.ts";
import type { TailReader } from "./tail.ts";

/**
 * One reader's view of the jobs that pass a filter: ADDED for each job, a BOOKMARK, then every change in the order of
 * the log. With a cursor, the stream continues after it, or sends GAP and a new snapshot if the log no longer reaches
 * back that far or has another incarnation. A job that leaves the filter is DELETED; one that enters it is ADDED.
 * Entries of a snapshot have no cursor, because a stream cannot continue from a part of a snapshot.
 */
export async function* stream(
  parts: StreamParts,
  request: WatchRequest,
  signal: AbortSignal,
): AsyncGenerator<WatchItem, void, undefined> {
  let from = request.cursor === "" ? null : parseCursor(request.cursor);
  if (from === null && request.cursor !== "") throw new Error("the cursor was not checked");
  const leave = parts.tail.attend();
  try {
    while (!signal.aborted) {
      const place: StreamPlace | null = from === null ? yield* snapshot(parts, request, signal) : placeAt(from);
      const end = place === null ? "gap" : yield* follow(parts, request, place, signal);
      if (end === "over") return;
      yield { type: "GAP", cursor: "" };
      from = null;
    }
  } finally {
    leave();
  }
}

/** Reads pages of the log until the tail can take over. Ends at a gap, or with the stream. */
async function* follow(
  parts: StreamParts,
  request: WatchRequest,
  place: StreamPlace,
  signal: AbortSignal,
): AsyncGenerator<WatchItem, "gap" | "over", undefined> {
  while (!signal.aborted) {
    const inbox = createInbox<SelectedChange | "jump">(parts.ports.clock, parts.options.bufferMax);
    const reader = tailReader(request, place, inbox, parts);
    const leave = parts.tail.follow(place, parts.options.bufferMax / 2, reader);
    if (leave !== null) {
      signal.addEventListener("abort", inbox.nudge, { once: true });
      try {
        return yield* live(parts, request, place, inbox, signal);
      } finally {
        signal.removeEventListener("abort", inbox.nudge);
        leave();
        inbox.close();
      }
    }
    const { entries, gap } = await parts.pages.after(place, signal);
    if (gap) return "gap";
    yield* deliver(parts, request, place, newChanges(place, entries, request.filter));
    place.position = entries.at(-1)?.position ?? place.position;
    if (place.position > place.sent) yield bookmark(place);
    // The log is ahead of the tail only until the tail reads again.
    if (entries.length === 0) await parts.settle();
  }
  return "over";
}

function tailReader(
  { filter }: WatchRequest,
  place: StreamPlace,
  inbox: Inbox<SelectedChange | "jump">,
  { options }: StreamParts,
): TailReader {
  return {
    filter,
    take: (change) => {
      if (!snapshotHas(place, change.job)) inbox.push(change);
    },
    settle: ({ job }) => settle(place, job),
    moved: (position) => {
      if (owesBookmark(place, position, options)) inbox.nudge();
    },
    jumped: () => inbox.push("jump"),
  };
}

/** True if a stream that has come to this position, and has nothing else to send, sends a bookmark now. */
function owesBookmark(place: StreamPlace, position: number, { bookmarkEntries }: StreamOptions): boolean {
  return position - place.sent >= bookmarkEntries || (place.owesBookmark && place.ahead.size === 0);
}

/** Sends the tail's entries in order, and bookmarks while there is no entry or the filter drops all of them. */
async function* live(
  parts: StreamParts,
  request: WatchRequest,
  place: StreamPlace,
  inbox: Inbox<SelectedChange | "jump">,
  signal: AbortSignal,
): AsyncGenerator<WatchItem, "gap" | "over", undefined> {
  while (!signal.aborted) {
    const heard = parts.tail.position();
    const items = inbox.takeAll();
    const selected = items.filter((item) => item !== "jump");
    if (selected.length > 0) yield* deliver(parts, request, place, selected, () => inbox.overflowed());
    if (inbox.overflowed()) {
      yield { type: "TOO_SLOW", cursor: sentCursor(place) };
      return "over";
    }
    if (items.length > selected.length) return "gap";
    place.position = heard;
    if (owesBookmark(place, heard, parts.options)) yield bookmark(place);
    const woken = await inbox.wait(parts.options.bookmarkMs);
    if (!woken && !signal.aborted) yield bookmark(place);
  }
  return "over";
}

/** Sends changes, unless the stream has stopped meanwhile. */
async function* deliver(
  { whole }: StreamParts,
  { full }: WatchRequest,
  place: StreamPlace,
  selected: readonly SelectedChange[],
  stopped: () => boolean = () => false,
): AsyncGenerator<WatchItem, void, undefined> {
  for await (const change of full ? whole.filled(selected) : selected) {
    if (stopped()) return;
    place.position = change.position;
    place.sent = change.position;
    yield change;
  }
}
