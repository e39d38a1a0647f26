import { type JobFilter, matchesFilter } from "../core/job/filter.ts";
import type { Job } from "../core/job/job.ts";
import { bareReplica, type JobSpec } from "../core/job/spec.ts";
import { encodeCursor, parseCursor } from "./cursor.ts";
import { createInbox, type Inbox } from "./inbox.ts";
import type { LogEntry, WatchPorts } from "./ports.ts";
import type { Tail } from "./tail.ts";

export type WatchRequest = { readonly filter: JobFilter; readonly cursor: string; readonly full: boolean };

export type WatchItem =
  | { readonly type: "ADDED" | "MODIFIED" | "DELETED"; readonly job: Job; readonly cursor: string }
  | { readonly type: "BOOKMARK" | "GAP" | "TOO_SLOW"; readonly cursor: string };

export type StreamOptions = {
  /** So many entries may wait for a reader before it is told that it is too slow. */
  readonly bufferMax: number;
  /** A stream that has nothing to say says at least this often where it is. */
  readonly bookmarkMs: number;
  /** A stream that passes over entries says where it is after this many. */
  readonly bookmarkEntries: number;
};

/** What `stream` stands on, beside its request. */
export type StreamParts = {
  readonly ports: WatchPorts;
  readonly tail: Tail;
  /** Gives everything that is committed now its position, so that a snapshot is hardly ever ahead of the log. */
  readonly settle: () => Promise<void>;
  readonly options: StreamOptions;
};

const PAGE = 500;
/** So many full records are loaded at once: each may be megabytes of templates. */
const RECORDS = 50;

/** Where a stream is, and which entries its snapshot has told already. */
type Place = {
  position: number;
  /** The position of the last cursor that the reader has. */
  told: number;
  /** By job uid: entries at or below this version are in the snapshot; they got their positions after it. */
  readonly ahead: Map<string, number>;
  /** The snapshot's bookmark is still owed: it waits until the entries that are ahead have passed, so that no resume repeats them. */
  owed: boolean;
};

type Passed = { readonly position: number; readonly item: { type: "ADDED" | "MODIFIED" | "DELETED"; job: Job } };

/**
 * One reader's view of the jobs that pass a filter: ADDED for each, a BOOKMARK, then every change in the order of the log. With a cursor it goes
 * on after it; GAP and a fresh snapshot where the log no longer reaches back that far. Leaving the filter is DELETED, entering it ADDED. An
 * entry's cursor is its own place; those of a snapshot are empty, because half of one is no place to go on from.
 */
export async function* stream(
  parts: StreamParts,
  request: WatchRequest,
  signal: AbortSignal,
): AsyncGenerator<WatchItem, void, undefined> {
  let from = request.cursor === "" ? null : parseCursor(request.cursor);
  if (from === null && request.cursor !== "") throw new Error("a cursor that was not checked");
  while (!signal.aborted) {
    const place: Place =
      from === null ? yield* snapshot(parts, request) : { position: from, told: from, ahead: new Map(), owed: false };
    const end = yield* follow(parts, request, place, signal);
    if (end === "over") return;
    yield { type: "GAP", cursor: "" };
    from = null;
  }
}

async function* snapshot(
  { ports, settle }: StreamParts,
  { filter, full }: WatchRequest,
): AsyncGenerator<WatchItem, Place, undefined> {
  await settle();
  const { jobs, head, ahead } = await ports.store.snapshot(filter);
  for (const job of jobs) yield { type: "ADDED", job: full ? job : withoutTemplates(job), cursor: "" };
  const place = { position: head, told: head, ahead: new Map(ahead), owed: ahead.size > 0 };
  if (!place.owed) yield { type: "BOOKMARK", cursor: encodeCursor(head) };
  return place;
}

/** Reads pages of the log until the tail takes over; ends with a gap, or with the stream. */
async function* follow(
  parts: StreamParts,
  request: WatchRequest,
  place: Place,
  signal: AbortSignal,
): AsyncGenerator<WatchItem, "gap" | "over", undefined> {
  while (!signal.aborted) {
    const inbox = createInbox<Passed | "jump">(parts.ports.clock, parts.options.bufferMax);
    const behind = { position: place.position };
    const listener = (entry: LogEntry | null) => hear(entry, request.filter, place, behind, inbox, parts);
    const leave = parts.tail.follow(place.position, parts.options.bufferMax / 2, listener);
    if (leave !== null) {
      signal.addEventListener("abort", inbox.nudge, { once: true });
      try {
        return yield* live(parts, request, place, behind, inbox, signal);
      } finally {
        signal.removeEventListener("abort", inbox.nudge);
        leave();
      }
    }
    const { entries, gap } = await parts.ports.store.entriesAfter(place.position, PAGE);
    if (gap) return "gap";
    const passed = entries.flatMap((entry) => pass(entry, request.filter, place) ?? []);
    yield* deliver(parts, request, place, passed);
    place.position = entries.at(-1)?.position ?? place.position;
    if (place.position > place.told) yield bookmark(place);
    // The log is ahead of the tail only until the tail's next look.
    if (entries.length === 0) await parts.settle();
  }
  return "over";
}

/** An entry for the reader; null where it is in the snapshot already or does not concern the filter. */
function pass(entry: LogEntry, filter: JobFilter, place: Place): Passed | null {
  const { uid, version } = entry.job;
  const told = place.ahead.get(uid);
  if (told !== undefined) {
    if (version >= told) place.ahead.delete(uid);
    if (version <= told) return null;
  }
  const was = entry.previous !== null && matchesFilter(filter, entry.job, entry.previous);
  const is = entry.type !== "DELETED" && matchesFilter(filter, entry.job);
  if (!was && !is) return null;
  const type = was ? (is ? "MODIFIED" : "DELETED") : "ADDED";
  return { position: entry.position, item: { type, job: entry.job } };
}

function hear(
  entry: LogEntry | null,
  filter: JobFilter,
  place: Place,
  behind: { position: number },
  inbox: Inbox<Passed | "jump">,
  { options }: StreamParts,
): void {
  if (entry === null) {
    inbox.push("jump");
    return;
  }
  const passed = pass(entry, filter, place);
  behind.position = entry.position;
  if (passed !== null) inbox.push(passed);
  else if (entry.position - place.told >= options.bookmarkEntries || (place.owed && place.ahead.size === 0)) {
    inbox.nudge();
  }
}

/** Passes on what the tail tells, in order; a bookmark when there is nothing to tell, or nothing but what the filter holds back. */
async function* live(
  parts: StreamParts,
  request: WatchRequest,
  place: Place,
  behind: { readonly position: number },
  inbox: Inbox<Passed | "jump">,
  signal: AbortSignal,
): AsyncGenerator<WatchItem, "gap" | "over", undefined> {
  while (!signal.aborted) {
    const heard = behind.position;
    const items = inbox.takeAll();
    const passed = items.filter((item) => item !== "jump");
    yield* deliver(parts, request, place, passed, () => inbox.overflowed());
    if (inbox.overflowed()) {
      yield { type: "TOO_SLOW", cursor: encodeCursor(place.told) };
      return "over";
    }
    if (items.length > passed.length) return "gap";
    place.position = heard;
    const settled = place.owed && place.ahead.size === 0;
    if (settled || place.position - place.told >= parts.options.bookmarkEntries) yield bookmark(place);
    const woken = await inbox.wait(parts.options.bookmarkMs);
    if (!woken && !signal.aborted) yield bookmark(place);
  }
  return "over";
}

function bookmark(place: Place): WatchItem {
  place.told = place.position;
  place.owed = false;
  return { type: "BOOKMARK", cursor: encodeCursor(place.position) };
}

/** Passes entries on; a full view takes the templates, which alone never change, from the records that still exist. */
async function* deliver(
  { ports }: StreamParts,
  { full }: WatchRequest,
  place: Place,
  passed: readonly Passed[],
  stopped: () => boolean = () => false,
): AsyncGenerator<WatchItem, void, undefined> {
  for (let at = 0; at < passed.length; at += RECORDS) {
    const some = passed.slice(at, at + RECORDS);
    const uids = new Set(some.map(({ item }) => item.job.uid));
    const records = full ? await ports.store.loadJobs([...uids]) : new Map<string, Job>();
    for (const { position, item } of some) {
      if (stopped()) return;
      const spec = withTemplates(item.job.spec, records.get(item.job.uid)?.spec);
      place.position = position;
      place.told = position;
      yield { type: item.type, job: { ...item.job, spec }, cursor: encodeCursor(position) };
    }
  }
}

function withoutTemplates(job: Job): Job {
  const bare = Object.entries(job.spec.replicaSpecs).map(([role, spec]) => [role, bareReplica(spec)]);
  return { ...job, spec: { ...job.spec, replicaSpecs: Object.fromEntries(bare) } };
}

function withTemplates(spec: JobSpec, full: JobSpec | undefined): JobSpec {
  if (full === undefined) return spec;
  const filled = Object.entries(spec.replicaSpecs).map(([role, replica]) => {
    return [role, { ...replica, template: full.replicaSpecs[role]?.template ?? replica.template }];
  });
  return { ...spec, replicaSpecs: Object.fromEntries(filled) };
}
