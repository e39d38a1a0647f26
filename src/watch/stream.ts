/** Serves clients that watch jobs: a snapshot, then every change of the jobs that match, with bounded buffers. */
import type { WatchItem, WatchRequest } from "../core/job/event-log.ts";
import type { Job } from "../core/job/job.ts";
import { canonicalJson } from "../runtime/json.ts";
import type { SharedCalls } from "../runtime/shared-calls.ts";
import { encodeCursor, parseCursor } from "./cursor.ts";
import { createInbox, type Inbox } from "./inbox.ts";
import type { LogPages } from "./log-pages.ts";
import type { WatchPorts } from "./ports.ts";
import { type SelectedChange, select } from "./selection.ts";
import type { Tail, TailReader } from "./tail.ts";
import type { WholeJobs } from "./whole-jobs.ts";

export type StreamOptions = {
  /** A reader that is more entries behind gets TOO_SLOW. */
  readonly bufferMax: number;
  /** A stream without entries sends a bookmark this often. */
  readonly bookmarkMs: number;
  /** A stream whose filter drops entries sends a bookmark after this many. */
  readonly bookmarkEntries: number;
};

/** Shared by all streams: the ports, the tail of the log, what they read together, and the bounds. */
export type StreamParts = {
  readonly ports: WatchPorts;
  readonly tail: Tail;
  /** Reads of snapshots. Streams that wait for the same share a read. */
  readonly reads: SharedCalls;
  readonly pages: LogPages;
  readonly whole: WholeJobs;
  /** Gives positions to everything that is committed now, so that a snapshot is rarely ahead of the log. */
  readonly settle: () => Promise<void>;
  readonly options: StreamOptions;
};

/** The most jobs whose templates are read at a time. Their bytes are bounded too. */
const RECORDS = 50;

/** The snapshot of a stream whose client left before it was read. */
const NOTHING = { jobs: [], head: 0, ahead: new Map<string, number>() };

/** Where a stream is in the log, and which entries its snapshot already contains. */
type StreamPlace = {
  position: number;
  /** The position of the last cursor that was sent. */
  sent: number;
  /** By job uid: the snapshot contains entries up to this version, although they got their positions after it. */
  readonly ahead: Map<string, number>;
  /** The snapshot's bookmark waits until the entries in `ahead` have passed: a resume must not repeat them. */
  owesBookmark: boolean;
};

/**
 * One reader's view of the jobs that pass a filter: ADDED for each job, a BOOKMARK, then every change in the order of
 * the log. With a cursor, the stream continues after it, or sends GAP and a new snapshot if the log no longer reaches
 * back that far. A job that leaves the filter is DELETED; one that enters it is ADDED. Entries of a snapshot have no
 * cursor, because a stream cannot continue from a part of a snapshot.
 */
export async function* stream(
  parts: StreamParts,
  request: WatchRequest,
  signal: AbortSignal,
): AsyncGenerator<WatchItem, void, undefined> {
  let from = request.cursor === "" ? null : parseCursor(request.cursor);
  if (from === null && request.cursor !== "") throw new Error("the cursor was not checked");
  while (!signal.aborted) {
    const place: StreamPlace =
      from === null
        ? yield* snapshot(parts, request, signal)
        : { position: from, sent: from, ahead: new Map(), owesBookmark: false };
    const end = yield* follow(parts, request, place, signal);
    if (end === "over") return;
    yield { type: "GAP", cursor: "" };
    from = null;
  }
}

async function* snapshot(
  parts: StreamParts,
  { filter, full }: WatchRequest,
  signal: AbortSignal,
): AsyncGenerator<WatchItem, StreamPlace, undefined> {
  const read = async () => {
    await parts.settle();
    return parts.ports.store.snapshot(filter);
  };
  const shared = await parts.reads.run(`snapshot ${canonicalJson(filter)}`, read, signal);
  const { jobs, head, ahead } = shared ?? NOTHING;
  if (!full) for (const job of jobs) yield { type: "ADDED", job, cursor: "" };
  else
    for await (const { job } of viewed(
      parts.whole,
      jobs.map((one) => ({ job: one })),
    )) {
      yield { type: "ADDED", job, cursor: "" };
    }
  const place = { position: head, sent: head, ahead: new Map(ahead), owesBookmark: ahead.size > 0 };
  if (!place.owesBookmark) yield { type: "BOOKMARK", cursor: encodeCursor(head) };
  return place;
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
    const leave = parts.tail.follow(place.position, parts.options.bufferMax / 2, reader);
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
    const { entries, gap } = await parts.pages.after(place.position, signal);
    if (gap) return "gap";
    const selected = entries.flatMap((entry) => {
      const change = select(entry, request.filter);
      const isNew = change !== null && !snapshotHas(place, entry.job);
      settle(place, entry.job);
      return isNew ? [change] : [];
    });
    yield* deliver(parts, request, place, selected);
    place.position = entries.at(-1)?.position ?? place.position;
    if (place.position > place.sent) yield bookmark(place);
    // The log is ahead of the tail only until the tail reads again.
    if (entries.length === 0) await parts.settle();
  }
  return "over";
}

/** True if the snapshot contains this version of the job. */
function snapshotHas({ ahead }: StreamPlace, { uid, version }: Job): boolean {
  return version <= (ahead.get(uid) ?? 0);
}

/** Notes that an entry has passed. Returns true once every entry that the snapshot contains has. */
function settle({ ahead }: StreamPlace, { uid, version }: Job): boolean {
  if (version >= (ahead.get(uid) ?? Number.POSITIVE_INFINITY)) ahead.delete(uid);
  return ahead.size === 0;
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
      if (!snapshotHas(place, change.item.job)) inbox.push(change);
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
      yield { type: "TOO_SLOW", cursor: encodeCursor(place.sent) };
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

function bookmark(place: StreamPlace): WatchItem {
  place.sent = place.position;
  place.owesBookmark = false;
  return { type: "BOOKMARK", cursor: encodeCursor(place.position) };
}

/** Sends changes, unless the stream has stopped meanwhile. */
async function* deliver(
  { whole }: StreamParts,
  { full }: WatchRequest,
  place: StreamPlace,
  selected: readonly SelectedChange[],
  stopped: () => boolean = () => false,
): AsyncGenerator<WatchItem, void, undefined> {
  const sends = ({ position, item }: SelectedChange, job: Job): WatchItem => {
    place.position = position;
    place.sent = position;
    return job === item.job ? item : { ...item, job };
  };
  if (!full) {
    for (const change of selected) {
      if (stopped()) return;
      yield sends(change, change.item.job);
    }
    return;
  }
  for await (const { change, job } of viewed(
    whole,
    selected.map((one) => ({ change: one, job: one.item.job })),
  )) {
    if (stopped()) return;
    yield sends(change, job);
  }
}

/** Items with the templates of the jobs whose records still exist. */
async function* viewed<Item extends { readonly job: Job }>(
  whole: WholeJobs,
  items: readonly Item[],
): AsyncGenerator<Item, void, undefined> {
  for (let at = 0; at < items.length; ) {
    const page = await whole.first(items.slice(at, at + RECORDS).map(({ job }) => job));
    for (const [index, job] of page.entries()) yield { ...(items[at + index] as Item), job };
    at += page.length;
  }
}
