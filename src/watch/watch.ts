import type { Telemetry } from "../telemetry/events.ts";
import { parseCursor } from "./cursor.ts";
import type { WatchPorts } from "./ports.ts";
import { createSequencer, type Sequencer } from "./sequencer.ts";
import { type StreamOptions, stream, type WatchItem, type WatchRequest } from "./stream.ts";
import { createTail } from "./tail.ts";

/** The watch stage: positions for what is committed, and streams of it. */
export type Watch = Sequencer & {
  /** Entries for one reader; ends when `signal` is aborted, or with TOO_SLOW. The cursor must have been checked. */
  readonly watch: (request: WatchRequest, signal: AbortSignal) => AsyncIterable<WatchItem>;
  /** True for the empty cursor and for those that a stream has given. */
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
