/**
 * Gives every call the same treatment: a client gets all errors of its request at once, and a status for every failure.
 */
import type { DescMessage, DescMethod, DescService, Message, MessageInitShape, MessageShape } from "@bufbuild/protobuf";
import {
  type handleBidiStreamingCall,
  type handleServerStreamingCall,
  type handleUnaryCall,
  Metadata,
  type Server,
  type ServerDuplexStream,
  type StatusObject,
  status,
  type UntypedServiceImplementation,
} from "@grpc/grpc-js";
import type { RequestMessage } from "../../core/access/judge.ts";
import { invariant } from "../../runtime/assert.ts";
import { VERSION } from "../../runtime/package-version.ts";
import { serving } from "../../runtime/served-call.ts";
import { callerOf } from "./authentication.ts";
import {
  type CallContext,
  type CallEnvironment,
  callAccess,
  callController,
  payFor,
  REQUEST_ID_HEADER,
  runStream,
  servedCallOf,
} from "./call.ts";
import { checkRequest } from "./check-request.ts";
import { invalidFields, serverStopping, toStatus, undecodable } from "./rpc-error.ts";
import { type Decoded, type Encoded, encode, ITEMS_WITH_ANSWERS, serviceDefinition } from "./service-definition.ts";

/** Answers one call: with a promise for a unary method, with an iterable for a streaming one. */
type MethodHandler<Method> = Method extends {
  readonly methodKind: infer Kind;
  readonly input: infer Input extends DescMessage;
  readonly output: infer Output extends DescMessage;
}
  ? Kind extends "unary"
    ? (request: MessageShape<Input>, context: CallContext) => Promise<MessageInitShape<Output> | Encoded>
    : Kind extends "server_streaming"
      ? (request: MessageShape<Input>, context: CallContext) => AsyncIterable<MessageInitShape<Output> | Encoded>
      : (requests: AsyncIterable<MessageShape<Input>>, context: CallContext) => AsyncIterable<MessageInitShape<Output>>
  : never;

/** One handler for each method of a service. */
export type ServiceHandlers<Service extends { readonly method: object }> = {
  readonly [Name in keyof Service["method"]]: MethodHandler<Service["method"][Name]>;
};

/**
 * Methods whose handlers also get requests that break the proto's constraints. They check further and answer with all
 * errors at once.
 */
const SEE_INVALID: ReadonlySet<string> = new Set([
  "gangway.v1.JobService.CreateJob",
  "gangway.v1.JobService.SimulateJob",
  "gangway.v1.ResourceManager.BatchAllocateResources",
  "gangway.v1.ResourceManager.BatchReleaseResources",
  "gangway.v1.ResourceManager.RenewAllocations",
]);

/** The header that tells the version of the server, in the response of every unary call. */
const VERSION_HEADER = "gangway-version";

/** The handlers of a service as grpc-js calls them. `api/web` calls them with calls that look like those of grpc-js. */
export type ServedService = { readonly service: DescService; readonly implementation: UntypedServiceImplementation };

/** Adds a service to the server. Every call is decoded, checked, handled and answered here. */
export function serve<Service extends { readonly method: object }>(
  server: Server,
  service: Service & DescServiceLike,
  handlers: ServiceHandlers<Service>,
  environment: CallEnvironment,
): ServedService {
  const implementation: UntypedServiceImplementation = {};
  for (const method of service.methods) {
    const handler = (handlers as Readonly<Record<string, unknown>>)[method.localName];
    invariant(typeof handler === "function", `${service.typeName} handles ${method.name}`);
    implementation[method.localName] = grpcHandler(method, handler as AnyHandler, environment);
  }
  const described = service as unknown as DescService;
  server.addService(serviceDefinition(described), implementation);
  return { service: described, implementation };
}

type DescServiceLike = Pick<DescService, "typeName" | "methods">;
type AnyHandler = (input: unknown, context: CallContext) => unknown;

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

/** A cut call may have taken effect. A request id, a token and a version keep a repeated one from happening twice. */
const REPEAT = "repeat the same call, which has perhaps taken effect";

type UnaryHandler = (request: Message, context: CallContext) => Promise<MessageInitShape<DescMessage> | Encoded>;
type StreamHandler = (input: unknown, context: CallContext) => AsyncIterable<MessageInitShape<DescMessage> | Encoded>;

function unary(
  method: DescMethod,
  handler: UnaryHandler,
  environment: CallEnvironment,
): handleUnaryCall<Decoded, Buffer> {
  return (call, callback) => {
    const caller = callerOf(call.metadata);
    const { identity } = caller;
    const place = caller.keepPlace();
    const controller = callController(call);
    const { signal } = controller;
    const run = async () => {
      try {
        await payFor(call.request.bytes, { place, signal, caller, environment });
        const access = callAccess(method, identity, environment);
        access.check(membersOf(readableOf(method, call.request, environment).message));
        const { request, ...found } = accept(method, call.request, environment);
        const response = await handler(request, { signal, identity, access, ...found });
        const encoded = encode(method.output, response);
        place.charge(encoded.length);
        return { code: status.OK, response: encoded } as const;
      } catch (cause) {
        const failure = toStatus(cause, environment.onInternalError);
        return { code: failure.code ?? status.UNKNOWN, failure } as const;
      }
    };
    const served = servedCallOf(method, call);
    const header = new Metadata();
    header.set(VERSION_HEADER, VERSION);
    header.set(REQUEST_ID_HEADER, served.requestId);
    call.sendMetadata(header);
    const { cuts, onInternalError } = environment;
    const end = (failure: Partial<StatusObject> | null, response?: Buffer) => {
      // False: the call was cut, which has answered it.
      if (cuts.delete(cut)) callback(failure, response);
    };
    const cut = () => {
      end(toStatus(serverStopping(REPEAT), onInternalError));
      controller.abort();
    };
    cuts.add(cut);
    void serving(served, () => observed(method, call.metadata, environment, run)).then((answer) => {
      place.leave();
      if ("failure" in answer) end(answer.failure);
      else end(null, answer.response);
    });
  };
}

function observed<T extends { readonly code: number }>(
  method: DescMethod,
  metadata: Metadata,
  { observe }: CallEnvironment,
  run: () => Promise<T>,
): Promise<T> {
  if (observe === undefined) return run();
  return observe({ method: pathOf(method), headers: metadata.getMap() }, run);
}

function serverStreaming(
  method: DescMethod,
  handler: StreamHandler,
  environment: CallEnvironment,
): handleServerStreamingCall<Decoded, Buffer> {
  return (call) => {
    const start = (context: CallContext) => {
      const { request, ...found } = accept(method, call.request, environment);
      return handler(request, { ...context, ...found });
    };
    runStream({ call, method, request: decodedMembers(call.request), bytes: call.request.bytes, start, environment });
  };
}

/** Null: the request cannot be decoded, and the handler does not get it. */
function decodedMembers(decoded: Decoded): RequestMessage | null {
  return decoded.kind === "message" ? membersOf(decoded.message) : null;
}

/** A message as an object with its members. */
function membersOf(message: Message): RequestMessage {
  return message as unknown as RequestMessage;
}

function bidiStreaming(
  method: DescMethod,
  handler: StreamHandler,
  environment: CallEnvironment,
): handleBidiStreamingCall<Decoded, Buffer> {
  return (call) => {
    runStream({
      call,
      method,
      request: null,
      bytes: 0,
      start: (context) => handler(acceptEach(method, call, environment), context),
      environment,
    });
  };
}

async function* acceptEach(
  method: DescMethod,
  call: ServerDuplexStream<Decoded, Buffer>,
  environment: CallEnvironment,
): AsyncIterable<Message> {
  for await (const decoded of call) yield accept(method, decoded as Decoded, environment).request;
}

/** A request that was decoded. Throws INVALID_ARGUMENT if it could not be. */
function readableOf(
  method: DescMethod,
  decoded: Decoded,
  { onBeyondLimit }: CallEnvironment,
): Decoded & { readonly kind: "message" } {
  if (decoded.kind === "message") return decoded;
  if (decoded.kind === "undecodable") throw undecodable(decoded.problem);
  if (decoded.kind === "beyondLimit") onBeyondLimit?.({ method: pathOf(method), count: 1 });
  throw invalidFields(decoded.notes);
}

/** `package.Service/Method`. */
function pathOf(method: DescMethod): string {
  return `${method.parent.typeName}/${method.name}`;
}

/** Returns the request of a call. Throws INVALID_ARGUMENT with every error of the request. */
function accept(
  method: DescMethod,
  decoded: Decoded,
  environment: CallEnvironment,
): { readonly request: Message } & Pick<CallContext, "violations" | "passedItems"> {
  const { message: request, passedItems } = readableOf(method, decoded, environment);
  if (passedItems.size > 0) environment.onBeyondLimit?.({ method: pathOf(method), count: passedItems.size });
  const name = `${method.parent.typeName}.${method.name}`;
  const violations = checkRequest(method.input, request, ITEMS_WITH_ANSWERS[name]);
  const seesInvalid = SEE_INVALID.has(name);
  if (violations.length > 0 && !seesInvalid) throw invalidFields(violations);
  return { request, violations, passedItems };
}
