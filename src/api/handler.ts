import {
  create,
  type DescMessage,
  type DescMethod,
  type DescService,
  type Message,
  type MessageInitShape,
  type MessageShape,
} from "@bufbuild/protobuf";
import type {
  handleBidiStreamingCall,
  handleServerStreamingCall,
  handleUnaryCall,
  Server,
  ServerDuplexStream,
  ServerWritableStream,
  UntypedServiceImplementation,
} from "@grpc/grpc-js";
import type { FieldNote } from "../core/job/sent.ts";
import { invariant } from "../runtime/assert.ts";
import { checkRequest } from "./check-request.ts";
import { invalidFields, type OnInternalError, toStatus, unavailable, undecodable } from "./rpc-error.ts";
import { type Decoded, serviceDefinition } from "./service-definition.ts";

/** What a handler knows beside its request. */
export type CallContext = {
  /** Aborted when the caller went away, its deadline passed, or the server stops. */
  readonly signal: AbortSignal;
  /** Who calls; `anonymous` without authentication. */
  readonly identity: string;
  /** What the proto's constraints found wrong; empty except for methods that ask to see invalid requests. */
  readonly violations: readonly FieldNote[];
};

/** Answers one call: a promise for a unary method, an iterable for a streaming one, of a response or what makes one. */
export type MethodHandler<Method> = Method extends {
  readonly methodKind: infer Kind;
  readonly input: infer Input extends DescMessage;
  readonly output: infer Output extends DescMessage;
}
  ? Kind extends "unary"
    ? (request: MessageShape<Input>, context: CallContext) => Promise<MessageInitShape<Output>>
    : Kind extends "server_streaming"
      ? (request: MessageShape<Input>, context: CallContext) => AsyncIterable<MessageInitShape<Output>>
      : (requests: AsyncIterable<MessageShape<Input>>, context: CallContext) => AsyncIterable<MessageInitShape<Output>>
  : never;

/** One handler for each method of a service. */
export type ServiceHandlers<Service extends { readonly method: object }> = {
  readonly [Name in keyof Service["method"]]: MethodHandler<Service["method"][Name]>;
};

/** What every call of a server shares. */
export type CallEnvironment = {
  readonly onInternalError: OnInternalError;
  /** Aborted when the server stops: streams then end as UNAVAILABLE. */
  readonly stopping: AbortSignal;
};

const IDENTITY = "anonymous";

/** Methods whose handlers want to see requests that break the proto's constraints, to answer with all that is wrong at once. */
const SEE_INVALID: ReadonlySet<string> = new Set(["gangway.v1.JobService.CreateJob"]);

/** Serves a service; every call is decoded, checked, handled and answered here. */
export function serve<Service extends { readonly method: object }>(
  server: Server,
  service: Service & DescServiceLike,
  handlers: ServiceHandlers<Service>,
  environment: CallEnvironment,
): void {
  const implementation: UntypedServiceImplementation = {};
  for (const method of service.methods) {
    const handler = (handlers as Readonly<Record<string, unknown>>)[method.localName];
    invariant(typeof handler === "function", `${service.typeName} handles ${method.name}`);
    implementation[method.localName] = grpcHandler(method, handler as AnyHandler, environment);
  }
  server.addService(serviceDefinition(service as unknown as DescService), implementation);
}

type DescServiceLike = Pick<DescService, "typeName" | "methods">;
type AnyHandler = (input: unknown, context: CallContext) => unknown;
type Call = { readonly cancelled: boolean; readonly on: (event: "cancelled", listener: () => void) => unknown };

function grpcHandler(method: DescMethod, handler: AnyHandler, environment: CallEnvironment) {
  switch (method.methodKind) {
    case "unary":
      return unary(method, handler as UnaryHandler, environment);
    case "server_streaming":
      return serverStreaming(method, handler as StreamHandler, environment);
    case "bidi_streaming":
      return bidiStreaming(method, handler as StreamHandler, environment);
    case "client_streaming":
      throw new Error(`${method.name}: client streaming is not served`);
  }
}

type UnaryHandler = (request: Message, context: CallContext) => Promise<MessageInitShape<DescMessage>>;
type StreamHandler = (input: unknown, context: CallContext) => AsyncIterable<MessageInitShape<DescMessage>>;

function unary(
  method: DescMethod,
  handler: UnaryHandler,
  environment: CallEnvironment,
): handleUnaryCall<Decoded, Message> {
  return (call, callback) => {
    const run = async () => {
      const { request, violations } = accept(method, call.request);
      const { signal } = callController(call);
      const response = await handler(request, { signal, identity: IDENTITY, violations });
      return create(method.output, response);
    };
    run().then(
      (response) => callback(null, response),
      (cause: unknown) => callback(toStatus(cause, environment.onInternalError)),
    );
  };
}

function serverStreaming(
  method: DescMethod,
  handler: StreamHandler,
  environment: CallEnvironment,
): handleServerStreamingCall<Decoded, Message> {
  return (call) => {
    const start = (context: CallContext) => {
      const { request, violations } = accept(method, call.request);
      return handler(request, { ...context, violations });
    };
    runStream({ call, method, start, environment });
  };
}

function bidiStreaming(
  method: DescMethod,
  handler: StreamHandler,
  environment: CallEnvironment,
): handleBidiStreamingCall<Decoded, Message> {
  return (call) => {
    runStream({ call, method, start: (context) => handler(acceptEach(method, call), context), environment });
  };
}

async function* acceptEach(method: DescMethod, call: ServerDuplexStream<Decoded, Message>): AsyncIterable<Message> {
  for await (const decoded of call) yield accept(method, decoded as Decoded).request;
}

type StreamRun = {
  readonly call: ServerWritableStream<Decoded, Message> | ServerDuplexStream<Decoded, Message>;
  readonly method: DescMethod;
  readonly start: (context: CallContext) => AsyncIterable<MessageInitShape<DescMessage>>;
  readonly environment: CallEnvironment;
};

/** Writes what the handler yields, no faster than the client reads; ends with the handler, its error, the client, or the server. */
function runStream({ call, method, start, environment }: StreamRun): void {
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
    end(unavailable("SERVER_STOPPING", "the server is stopping; continue from the last cursor in a moment"));
    controller.abort();
  };
  const run = async () => {
    for await (const response of start({ signal, identity: IDENTITY, violations: [] })) {
      if (ended || signal.aborted) break;
      if (!call.write(create(method.output, response))) await drained(call, signal);
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

function callController(call: Call): AbortController {
  const controller = new AbortController();
  if (call.cancelled) controller.abort();
  call.on("cancelled", () => controller.abort());
  return controller;
}

/** The request of a call, or a throw that says all that is wrong with it. */
function accept(method: DescMethod, decoded: Decoded): { request: Message; violations: readonly FieldNote[] } {
  if (decoded.kind === "undecodable") throw undecodable(decoded.problem);
  const violations = checkRequest(method.input, decoded.message);
  const seesInvalid = SEE_INVALID.has(`${method.parent.typeName}.${method.name}`);
  if (violations.length > 0 && !seesInvalid) throw invalidFields(violations);
  return { request: decoded.message, violations };
}
