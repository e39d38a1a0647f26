import type { WatchItem, WatchRequest } from "../core/job/request/event-log.ts";
import { SharedCalls } from "../runtime/shared-calls.ts";
import type { Telemetry } from "../telemetry/events.ts";
import { parseCursor } from "./cursor.ts";
import { LogPages } from "./log-pages.ts";
import type { WatchPorts } from "./ports.ts";
import { createSequencer, type Sequencer } from "./sequencer.ts";
import { stream } from "./stream.ts";
import type { StreamOptions } from "./stream-parts.ts";
import { createTail } from "./tail.ts";
import { WholeJobs } from "./whole-jobs.ts";

/** The watch stage: gives positions to committed changes and streams them. */
export type Watch = Sequencer & {
  /** Entries for one reader. Ends when `signal` is aborted, or with TOO_SLOW. The caller has checked the cursor. */
  readonly watch: (request: WatchRequest, signal: AbortSignal) => AsyncIterable<WatchItem>;
  /** True for the empty cursor and for cursors that a stream has sent. */
  readonly checkCursor: (cursor: string) => boolean;
};

const DEFAULTS: StreamOptions = { bufferMax: 1_000, bookmarkMs: 5_000, bookmarkEntries: 500, snapshotPage: 200 };

/**
 * How many pages of snapshots and of the log are read at a time: a thousand streams that begin together must leave
 * connections of the database to everything else.
 */
const READS_MAX = 4;
const NEVER = new AbortController().signal;

export function createWatch(
  ports: WatchPorts,
  telemetry: Pick<Telemetry, "loopFailed">,
  options: Partial<StreamOptions> = {},
): Watch {
  const tail = createTail(ports.store);
  const sequencer = createSequencer(ports, tail.advance, telemetry);
  const settling = new SharedCalls(1);
  const settle = async () => {
    await settling.run("settle", sequencer.runOnce, NEVER);
  };
  const reads = new SharedCalls(READS_MAX);
  const pages = new LogPages(ports.store, reads);
  const whole = new WholeJobs(ports.store);
  const parts = { ports, tail, reads, pages, whole, settle, options: { ...DEFAULTS, ...options } };
  return {
    ...sequencer,
    watch: (request, signal) => stream(parts, request, signal),
    checkCursor: (cursor) => cursor === "" || parseCursor(cursor) !== null,
  };
}
