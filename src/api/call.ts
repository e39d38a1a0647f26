import type { DescMessage, DescMethod, MessageInitShape } from "@bufbuild/protobuf";
import type { ServerDuplexStream, ServerWritableStream } from "@grpc/grpc-js";
import type { FieldNote } from "../core/job/sent.ts";
import { type OnInternalError, toStatus, unavailable } from "./rpc-error.ts";
import { type Decoded, encode } from "./service-definition.ts";

/** What a handler knows beside its request. */
export type CallContext = {
  /** Aborted when the caller went away, its deadline passed, or the server stops. */
  readonly signal: AbortSignal;
  /** Who calls; `anonymous` without authentication. */
  readonly identity: string;
  /** What the proto's constraints found wrong; empty except for methods that ask to see invalid requests. */
  readonly violations: readonly FieldNote[];
};

/** What every call of a server shares. */
export type CallEnvironment = {
  readonly onInternalError: OnInternalError;
  /** Aborted when the server stops: streams then end as UNAVAILABLE. */
  readonly stopping: AbortSignal;
  /** Runs each unary call, to measure or trace it; absent: nobody does. */
  readonly observe?: ObserveCall;
};

/** `method` as `package.Service/Method`; `headers` are what the caller sent beside the request. */
export type ObserveCall = <T extends { readonly code: number }>(
  call: { readonly method: string; readonly headers: Readonly<Record<string, unknown>> },
  run: () => Promise<T>,
) => Promise<T>;

/** Who calls, without authentication. */
export const IDENTITY = "anonymous";

type Call = { readonly cancelled: boolean; readonly on: (event: "cancelled", listener: () => void) => unknown };

export type StreamRun = {
  readonly call: ServerWritableStream<Decoded, Buffer> | ServerDuplexStream<Decoded, Buffer>;
  readonly method: DescMethod;
  readonly start: (context: CallContext) => AsyncIterable<MessageInitShape<DescMessage>>;
  readonly environment: CallEnvironment;
};

/** Writes what the handler yields, no faster than the client reads; ends with the handler, its error, the client, or the server. */
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
    end(unavailable("SERVER_STOPPING", "the server is stopping; call again in a moment, a watch with its last cursor"));
    controller.abort();
  };
  const run = async () => {
    for await (const response of start({ signal, identity: IDENTITY, violations: [] })) {
      if (ended || signal.aborted) break;
      if (!call.write(encode(method.output, response))) await drained(call, signal);
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

function drained(call: StreamRun["call"], signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) return resolve();
    const done = () => {
      call.removeListener("drain", done);
      signal.removeEventListener("abort", done);
      resolve();
    };
    call.once("drain", done);
    signal.addEventListener("abort", done, { once: true });
  });
}

/** Aborted when the caller goes away or its deadline passes. */
export function callController(call: Call): AbortController {
  const controller = new AbortController();
  if (call.cancelled) controller.abort();
  call.on("cancelled", () => controller.abort());
  return controller;
}
