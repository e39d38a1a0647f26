import { randomUUID } from "node:crypto";
import type { DescMessage, DescMethod, MessageInitShape } from "@bufbuild/protobuf";
import type { ServerDuplexStream, ServerUnaryCall, ServerWritableStream } from "@grpc/grpc-js";
import type { CallPlace } from "../../core/access/call-limits.ts";
import type { Authenticate, Identity } from "../../core/access/identity.ts";
import type { RequestMessage } from "../../core/access/judge.ts";
import type { FieldNote } from "../../core/job/request/sent.ts";
import type { Clock } from "../../runtime/clock.ts";
import { linkedController } from "../../runtime/linked-controller.ts";
import { type ServedCall, serving } from "../../runtime/served-call.ts";
import type { Authorization } from "../ports.ts";
import { type Caller, callerOf } from "./authentication.ts";
import { CallAccess } from "./call-access.ts";
import { limitedCall } from "./limited-call.ts";
import { CALL_ENDED, credentialEnded, type OnInternalError, serverStopping, stalled, toStatus } from "./rpc-error.ts";
import { type Decoded, type Encoded, encode } from "./service-definition.ts";
import { untilRefused } from "./until-refused.ts";

/** The context of a call, which its handler gets with the request. */
export type CallContext = {
  /** Aborted when the caller leaves, when its deadline passes, or when the server stops. */
  readonly signal: AbortSignal;
  readonly identity: Identity;
  /** What the caller may do, beside this call. */
  readonly access: CallAccess;
  /** The proto constraints that the request breaks. Empty except for methods that accept invalid requests. */
  readonly violations: readonly FieldNote[];
  /** The items of the request that pass a limit, by their places, where each item has an answer of its own. */
  readonly passedItems?: ReadonlyMap<number, FieldNote>;
};

/** Each answers its call with UNAVAILABLE at once, because the server ends. */
export type CallCuts = Set<() => void>;

/** The part of a context that all calls of a server share. */
export type CallEnvironment = {
  readonly onInternalError: OnInternalError;
  /** Aborted when the server stops. Streams then end with UNAVAILABLE. */
  readonly stopping: AbortSignal;
  /** The unary calls that are under way. */
  readonly cuts: CallCuts;
  /** Called for each request, and each item with an answer of its own, that passes a declared limit. */
  readonly onBeyondLimit?: OnBeyondLimit;
  /** Runs each unary call, to measure or trace it. Omitted: calls run directly. */
  readonly observe?: ObserveCall;
  readonly clock: Pick<Clock, "sleep">;
  /** Judges the credentials of a stream again. */
  readonly authenticate: Authenticate;
  /** Null: every caller may do everything. */
  readonly authorization: Authorization | null;
};

/** A client that takes no message for this long would otherwise keep what its stream holds for ever. */
const STALL_MS_MAX = 60_000;
/**
 * A stream of grpc-js keeps 16 messages, of whatever size, for a client that reads slowly. After a message of more
 * bytes than this the stream waits until it is on its way: templates may be megabytes.
 */
const LARGE_BYTES = 64 * 1024;

/** `method` is `package.Service/Method`; `count`: how many requests or items pass a limit. */
export type OnBeyondLimit = (of: { readonly method: string; readonly count: number }) => void;

/** `method` is `package.Service/Method`; `headers` is the metadata of the call. */
export type ObserveCall = <T extends { readonly code: number }>(
  call: { readonly method: string; readonly headers: Readonly<Record<string, unknown>> },
  run: () => Promise<T>,
) => Promise<T>;

type Call = { readonly cancelled: boolean; readonly on: (event: "cancelled", listener: () => void) => unknown };

type StreamRun = {
  readonly call: ServerWritableStream<Decoded, Buffer> | ServerDuplexStream<Decoded, Buffer>;
  readonly method: DescMethod;
  /** Null: the client streams its requests. */
  readonly request: RequestMessage | null;
  /** The bytes of the request. */
  readonly bytes: number;
  readonly start: (context: CallContext) => AsyncIterable<MessageInitShape<DescMessage> | Encoded>;
  readonly environment: CallEnvironment;
};

/**
 * Writes the messages that the handler yields, no faster than the client reads them. The call ends when the handler
 * returns or throws, when the client leaves, or when the server stops.
 */
export function runStream({ call, method, request, bytes, start, environment }: StreamRun): void {
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
    end(serverStopping("repeat the call in a moment, and resume a watch with its last cursor"));
    controller.abort();
  };
  const caller = callerOf(call.metadata);
  const place = caller.keepPlace();
  const access = callAccess(method, caller.identity, environment);
  const served = servedCallOf(method, call);
  const run = async () => {
    await payFor(bytes, { place, signal, caller, environment });
    access.check(request);
    for await (const response of start({
      signal,
      identity: caller.identity,
      access,
      violations: [],
      passedItems: new Map(),
    })) {
      if (ended || signal.aborted) break;
      const message = encode(method.output, response);
      if (!(await sent({ call, environment }, message, signal))) throw stalled(STALL_MS_MAX / 1000);
    }
  };
  if (environment.stopping.aborted) {
    place.leave();
    stop();
    return;
  }
  environment.stopping.addEventListener("abort", stop, { once: true });
  const over = linkedController(signal);
  const endWith = (error: Error | null) => {
    if (error === null) return;
    end(error);
    controller.abort();
  };
  void untilRefused(caller, environment, over.signal).then((why) =>
    endWith(why === null ? null : credentialEnded(why)),
  );
  void access.untilDenied(request, over.signal).then(endWith);
  serving(served, run)
    .then(() => end(), end)
    .finally(() => {
      place.leave();
      over.abort();
      environment.stopping.removeEventListener("abort", stop);
    });
}

/** Pays for the bytes of a request. Throws RESOURCE_EXHAUSTED, perhaps later, if its caller is at a limit. */
export async function payFor(
  bytes: number,
  {
    place,
    signal,
    caller,
    environment,
  }: {
    readonly place: Pick<CallPlace, "pay">;
    readonly signal: AbortSignal;
    readonly caller: Pick<Caller, "identity">;
    readonly environment: Pick<CallEnvironment, "clock">;
  },
): Promise<void> {
  const paid = place.pay(bytes);
  const beyond = paid instanceof Promise ? await paid : paid;
  if (beyond === null) return;
  await environment.clock.sleep(beyond.heldMs, signal);
  throw limitedCall(beyond, caller.identity.subject);
}

/** The header with the id of a request, which the response of every unary call has too. */
export const REQUEST_ID_HEADER = "x-request-id";
/** What a client may send as the id of its request: it goes to logs. */
const REQUEST_ID = /^[\x21-\x7e]{1,128}$/;

/** What changes and refusals of the call are recorded with. A call without a request id gets one. */
export function servedCallOf(
  method: DescMethod,
  call: Pick<ServerUnaryCall<unknown, unknown>, "metadata" | "getPeer">,
): ServedCall {
  const { subject, method: how } = callerOf(call.metadata).identity;
  const sent = String(call.metadata.get(REQUEST_ID_HEADER)[0] ?? "");
  const requestId = REQUEST_ID.test(sent) ? sent : randomUUID();
  return { subject, method: how, peer: call.getPeer(), rpc: nameOf(method), requestId };
}

function nameOf(method: DescMethod): string {
  return `${method.parent.typeName}/${method.name}`;
}

/** What a caller may do in a call of this method. */
export function callAccess(
  method: DescMethod,
  identity: Identity,
  { authorization }: Pick<CallEnvironment, "authorization">,
): CallAccess {
  return new CallAccess(authorization, { identity, rpc: nameOf(method) });
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
  // Without a reason it would make an error with a stack, for each message that waits.
  goOn = () => over.abort("goes on");
  if (!isLarge) call.once("drain", goOn);
  await environment.clock.sleep(STALL_MS_MAX, over.signal);
  call.removeListener("drain", goOn);
  return over.signal.aborted;
}

/** Returns a controller that is aborted when the call ends: with its answer, its caller's leave, or its deadline. */
export function callController(call: Call): AbortController {
  const controller = new AbortController();
  if (call.cancelled) controller.abort(CALL_ENDED);
  call.on("cancelled", () => controller.abort(CALL_ENDED));
  return controller;
}
