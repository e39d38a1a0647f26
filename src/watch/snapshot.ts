/**
 * The jobs with which a stream begins. They are read a page at a time, when the client has taken the page before: so a
 * stream keeps one page in memory, however many jobs match, and others have their turn between its pages.
 */

import type { Job } from "../core/job/job.ts";
import type { JobKey, LogPlace, WatchItem, WatchRequest } from "../core/job/request/event-log.ts";
import { compareText } from "../runtime/compare-text.ts";
import { canonicalJson } from "../runtime/json.ts";
import { bookmark, newChanges, placeAt, type StreamPlace } from "./place.ts";
import type { SnapshotPage } from "./ports.ts";
import type { StreamParts } from "./stream-parts.ts";

type JobItem = Extract<WatchItem, { readonly job: Job }>;

const NOWHERE: LogPlace = { incarnation: "", position: 0 };
/** The page of a stream whose client left before it was read. */
const NOTHING: SnapshotPage = { jobs: [], head: NOWHERE, ahead: [], more: false };

/**
 * Sends each matching job, and returns the place in the log to follow from. Null: the log lost its beginning meanwhile,
 * so that the snapshot must begin again.
 *
 * Each page shows the log's head of its own. Before a page is sent, the changes of the log up to its head are, but only
 * those of jobs on the pages before: jobs on later pages are read with their changes. So the stream is at the head of
 * the last page with all jobs in the end.
 */
export async function* snapshot(
  parts: StreamParts,
  request: WatchRequest,
  signal: AbortSignal,
): AsyncGenerator<WatchItem, StreamPlace | null, undefined> {
  let place = placeAt(NOWHERE);
  let after: JobKey | null = null;
  for (let more = true; more; ) {
    const page = await readPage(parts, request, after, signal);
    if (after === null) place = placeAt(page.head);
    else if (!(yield* catchUp(parts, request, place, { after, head: page.head }, signal))) return null;
    noteAhead(place, page, after);
    place.position = page.head.position;
    yield* sent(parts, request, page.jobs.map(added));
    after = page.jobs.at(-1) ?? after;
    more = page.more;
  }
  place.sent = place.position;
  place.owesBookmark = place.ahead.size > 0;
  if (!place.owesBookmark) yield bookmark(place);
  return place;
}

/** Streams that wait for the same page share a read. */
async function readPage(
  { ports, reads, settle, options }: StreamParts,
  { filter }: WatchRequest,
  after: JobKey | null,
  signal: AbortSignal,
): Promise<SnapshotPage> {
  const read = async () => {
    await settle();
    return ports.store.snapshot({ filter, after, limit: options.snapshotPage });
  };
  const key = `snapshot ${canonicalJson(filter)} ${after?.createTimeMs} ${after?.uid}`;
  return (await reads.run(key, read, signal)) ?? NOTHING;
}

/** Notes which changes without a position the page contains. Those of jobs on earlier pages are new to the stream. */
function noteAhead(place: StreamPlace, { ahead }: SnapshotPage, after: JobKey | null): void {
  for (const change of ahead) {
    if (after === null || order(change, after) > 0) place.ahead.set(change.uid, change.version);
  }
}

/** Sends the changes up to `head` of the jobs that were sent, those up to `after`. Returns false at a gap. */
async function* catchUp(
  parts: StreamParts,
  request: WatchRequest,
  place: StreamPlace,
  { after, head }: { readonly after: JobKey; readonly head: LogPlace },
  signal: AbortSignal,
): AsyncGenerator<WatchItem, boolean, undefined> {
  // The page of a client that has left has no head.
  if (head.incarnation !== place.incarnation) return head === NOWHERE;
  while (place.position < head.position) {
    const { entries, gap } = await parts.pages.after(place, signal);
    if (gap) return false;
    const upToHead = entries.filter(({ position }) => position <= head.position);
    const changes = newChanges(place, upToHead, request.filter).filter(({ job }) => order(job, after) <= 0);
    yield* sent(
      parts,
      request,
      changes.map((change) => ({ ...change, cursor: "" })),
    );
    // Nothing is read only if the client has left.
    place.position = upToHead.at(-1)?.position ?? head.position;
  }
  return true;
}

function sent({ whole }: StreamParts, { full }: WatchRequest, items: readonly JobItem[]) {
  return full ? whole.filled(items) : items;
}

function added(job: Job) {
  return { type: "ADDED", job, cursor: "" } as const;
}

function order(a: JobKey, b: JobKey): number {
  return a.createTimeMs - b.createTimeMs || compareText(a.uid, b.uid);
}
