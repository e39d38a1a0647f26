import type { DescMessage, DescMethod, MessageInitShape } from "@bufbuild/protobuf";
import type { ServerDuplexStream, ServerWritableStream } from "@grpc/grpc-js";
import type { FieldNote } from "../../core/job/sent.ts";
import type { Clock } from "../../runtime/clock.ts";
import { linkedController } from "../../runtime/linked-controller.ts";
import { type OnInternalError, stalled, toStatus, unavailable } from "./rpc-error.ts";
import { type Decoded, type Encoded, encode } from "./service-definition.ts";

/** The context of a call, which its handler gets with the request. */
export type CallContext = {
  /** Aborted when the caller leaves, when its deadline passes, or when the server stops. */
  readonly signal: AbortSignal;
  /** The name of the caller; `anonymous` without authentication. */
  readonly identity: string;
  /** The proto constraints that the request breaks. Empty except for methods that accept invalid requests. */
  readonly violations: readonly FieldNote[];
};

/** The part of a context that all calls of a server share. */
export type CallEnvironment = {
  readonly onInternalError: OnInternalError;
  /** Aborted when the server stops. Streams then end with UNAVAILABLE. */
  readonly stopping: AbortSignal;
  /** Runs each unary call, to measure or trace it. Omitted: calls run directly. */
  readonly observe?: ObserveCall;
  readonly clock: Pick<Clock, "sleep">;
};

/** A client that takes no message for this long would otherwise keep what its stream holds for ever. */
const STALL_MS_MAX = 60_000;

/** `method` is `package.Service/Method`; `headers` is the metadata of the call. */
export type ObserveCall = <T extends { readonly code: number }>(
  call: { readonly method: string; readonly headers: Readonly<Record<string, unknown>> },
  run: () => Promise<T>,
) => Promise<T>;

/** The name of every caller, since there is no authentication. */
export const IDENTITY = "anonymous";

type Call = { readonly cancelled: boolean; readonly on: (event: "cancelled", listener: () => void) => unknown };

type StreamRun = {
  readonly call: ServerWritableStream<Decoded, Buffer> | ServerDuplexStream<Decoded, Buffer>;
  readonly method: DescMethod;
  readonly start: (context: CallContext) => AsyncIterable<MessageInitShape<DescMessage> | Encoded>;
  readonly environment: CallEnvironment;
};

/**
 * Writes the messages that the handler yields, no faster than the client reads them. The call ends when the handler
 * returns or throws, when the client leaves, or when the server stops.
 */
export function runStream({ call, method, start, environment }: StreamRun): void {
  const controller = callController(call);
  const { signal } = controller;
  let ended = false;
  const end = (cause?: unknown) => {
    if (ended) return;
    ended = true;
    if (cause === undefined || call.cancelled) call.end();
    else call.emit("error", toStatus(cause, environment.onInternalError));
  };
  const stop = () => {
    end(
      unavailable(
        "SERVER_STOPPING",
        "the server is stopping; repeat the call in a moment, and resume a watch with its last cursor",
      ),
    );
    controller.abort();
  };
  const run = async () => {
    for await (const response of start({ signal, identity: IDENTITY, violations: [] })) {
      if (ended || signal.aborted) break;
      if (call.write(encode(method.output, response))) continue;
      if (!(await drained(call, signal, environment.clock))) throw stalled(STALL_MS_MAX / 1000);
    }
  };
  if (environment.stopping.aborted) {
    stop();
    return;
  }
  environment.stopping.addEventListener("abort", stop, { once: true });
  run()
    .then(() => end(), end)
    .finally(() => environment.stopping.removeEventListener("abort", stop));
}

/** Waits until the client has read, or the signal is aborted. False: neither happened for `STALL_MS_MAX`. */
async function drained(call: StreamRun["call"], signal: AbortSignal, clock: Pick<Clock, "sleep">): Promise<boolean> {
  using over = linkedController(signal);
  const done = () => over.abort();
  call.once("drain", done);
  await clock.sleep(STALL_MS_MAX, over.signal);
  call.removeListener("drain", done);
  return over.signal.aborted;
}

/** Returns a controller that is aborted when the caller leaves or its deadline passes. */
export function callController(call: Call): AbortController {
  const controller = new AbortController();
  if (call.cancelled) controller.abort();
  call.on("cancelled", () => controller.abort());
  return controller;
}
