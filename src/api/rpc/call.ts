import type { DescMessage, DescMethod, MessageInitShape } from "@bufbuild/protobuf";
import type { ServerDuplexStream, ServerWritableStream } from "@grpc/grpc-js";
import type { Authenticate, Identity } from "../../core/access/identity.ts";
import type { FieldNote } from "../../core/job/sent.ts";
import type { Clock } from "../../runtime/clock.ts";
import { linkedController } from "../../runtime/linked-controller.ts";
import { callerOf, untilRefused } from "./authentication.ts";
import { credentialEnded, type OnInternalError, stalled, toStatus, unavailable } from "./rpc-error.ts";
import { type Decoded, type Encoded, encode } from "./service-definition.ts";

/** The context of a call, which its handler gets with the request. */
export type CallContext = {
  /** Aborted when the caller leaves, when its deadline passes, or when the server stops. */
  readonly signal: AbortSignal;
  readonly identity: Identity;
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
  /** Judges the credentials of a stream again. */
  readonly authenticate: Authenticate;
};

/** A client that takes no message for this long would otherwise keep what its stream holds for ever. */
const STALL_MS_MAX = 60_000;
/**
 * A stream of grpc-js keeps 16 messages, of whatever size, for a client that reads slowly. After a message of more
 * bytes than this the stream waits until it is on its way: templates may be megabytes.
 */
const LARGE_BYTES = 64 * 1024;

/** `method` is `package.Service/Method`; `headers` is the metadata of the call. */
export type ObserveCall = <T extends { readonly code: number }>(
  call: { readonly method: string; readonly headers: Readonly<Record<string, unknown>> },
  run: () => Promise<T>,
) => Promise<T>;

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
  const caller = callerOf(call.metadata);
  const run = async () => {
    for await (const response of start({ signal, identity: caller.identity, violations: [] })) {
      if (ended || signal.aborted) break;
      const message = encode(method.output, response);
      if (!(await sent({ call, environment }, message, signal))) throw stalled(STALL_MS_MAX / 1000);
    }
  };
  if (environment.stopping.aborted) {
    stop();
    return;
  }
  environment.stopping.addEventListener("abort", stop, { once: true });
  const over = linkedController(signal);
  void untilRefused(caller, environment, over.signal).then((why) => {
    if (why === null) return;
    end(credentialEnded(why));
    controller.abort();
  });
  run()
    .then(() => end(), end)
    .finally(() => {
      over.abort();
      environment.stopping.removeEventListener("abort", stop);
    });
}

/**
 * Sends a message, and waits until there is room for the next one. False: the client has read nothing for
 * `STALL_MS_MAX`.
 */
async function sent(
  { call, environment }: Pick<StreamRun, "call" | "environment">,
  message: Buffer,
  signal: AbortSignal,
): Promise<boolean> {
  const isLarge = message.length > LARGE_BYTES;
  let goOn = () => {};
  const hasRoom = call.write(message, () => isLarge && goOn());
  if (hasRoom && !isLarge) return true;
  using over = linkedController(signal);
  goOn = () => over.abort();
  if (!isLarge) call.once("drain", goOn);
  await environment.clock.sleep(STALL_MS_MAX, over.signal);
  call.removeListener("drain", goOn);
  return over.signal.aborted;
}

/** Returns a controller that is aborted when the caller leaves or its deadline passes. */
export function callController(call: Call): AbortController {
  const controller = new AbortController();
  if (call.cancelled) controller.abort();
  call.on("cancelled", () => controller.abort());
  return controller;
}
