import type { WatchItem, WatchRequest } from "../core/job/event-log.ts";
import type { Telemetry } from "../telemetry/events.ts";
import { parseCursor } from "./cursor.ts";
import type { WatchPorts } from "./ports.ts";
import { createSequencer, type Sequencer } from "./sequencer.ts";
import { type StreamOptions, stream } from "./stream.ts";
import { createTail } from "./tail.ts";

/** The watch stage: gives positions to committed changes and streams them. */
export type Watch = Sequencer & {
  /** Entries for one reader. Ends when `signal` is aborted, or with TOO_SLOW. The caller has checked the cursor. */
  readonly watch: (request: WatchRequest, signal: AbortSignal) => AsyncIterable<WatchItem>;
  /** True for the empty cursor and for cursors that a stream has sent. */
  readonly checkCursor: (cursor: string) => boolean;
};

const DEFAULTS: StreamOptions = { bufferMax: 1_000, bookmarkMs: 5_000, bookmarkEntries: 500 };

export function createWatch(
  ports: WatchPorts,
  telemetry: Pick<Telemetry, "loopFailed">,
  options: Partial<StreamOptions> = {},
): Watch {
  const tail = createTail(ports.store);
  const sequencer = createSequencer(ports, tail.advance, telemetry);
  const parts = { ports, tail, settle: sequencer.runOnce, options: { ...DEFAULTS, ...options } };
  return {
    ...sequencer,
    watch: (request, signal) => stream(parts, request, signal),
    checkCursor: (cursor) => cursor === "" || parseCursor(cursor) !== null,
  };
}
