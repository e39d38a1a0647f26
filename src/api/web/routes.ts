/** The RPCs of the service for clients of Connect and gRPC-Web. This file alone loads the library of Connect. */
import { createRegistry, type DescMethod, fromBinary } from "@bufbuild/protobuf";
import {
  ConnectError,
  createConnectRouter,
  createContextKey,
  createContextValues,
  type HandlerContext,
} from "@connectrpc/connect";
import { universalRequestFromNodeRequest, universalResponseToNodeResponse } from "@connectrpc/connect-node";
import type { handleServerStreamingCall, handleUnaryCall, Metadata } from "@grpc/grpc-js";
import { file_google_rpc_error_details } from "../../gen/google/rpc/error_details_pb.ts";
import type { Clock } from "../../runtime/clock.ts";
import type { Soon } from "../../runtime/soon.ts";
import type { ServedService } from "../rpc/handler.ts";
import { type OnInternalError, toStatus } from "../rpc/rpc-error.ts";
import type { Decoded } from "../rpc/service-definition.ts";
import { skipBody, type WebResponse } from "./answers.ts";
import { connectError } from "./connect-error.ts";
import { CallFailure, HttpCall } from "./http-call.ts";
import { type BodyBounds, emptyMessage, formOf, readRequest, type WebRequest } from "./read-request.ts";

export type RoutesPorts = {
  readonly served: readonly ServedService[];
  readonly clock: Pick<Clock, "sleep">;
  readonly onInternalError: OnInternalError;
  readonly body: BodyBounds;
};

/** One request, from its headers on. */
export type WebCall = {
  readonly request: WebRequest;
  readonly response: WebResponse;
  readonly metadata: Metadata;
  readonly peer: string;
  /** Lets the call in, before anything of its body is read. Throws what `enterCall` throws. */
  readonly enter: (method: { readonly path: string; readonly responseStream: boolean }) => Soon<void>;
  /** Passes parts of the answer on, no faster than the client reads them. */
  readonly deliver: (body: AsyncIterable<Uint8Array>) => AsyncIterable<Uint8Array>;
};

type Handlers = ReturnType<typeof createConnectRouter>["handlers"];
type Handler = Handlers[number];

/** Answers the calls of RPCs. */
export type Routes = { readonly handle: (path: string, call: WebCall) => "handled" | "unknown" };

/** What a call carries through the library. Null outside of calls. */
type Carried = { readonly call: WebCall; decoded: Decoded | null };
const CARRIED = createContextKey<Carried | null>(null);

/** Errors have details of these messages. */
const DETAILS = createRegistry(file_google_rpc_error_details);
/** No request and no answer is compressed. */
const NO_COMPRESSION = { acceptCompression: [] };

export function createRoutes(ports: RoutesPorts): Routes {
  const { served, onInternalError } = ports;
  const failed = (cause: unknown) => connectError(toStatus(cause, onInternalError), DETAILS);
  const thrown = (cause: unknown): never => {
    if (cause instanceof CallFailure) throw connectError(cause.status, DETAILS);
    throw hasLeft(cause) ? ConnectError.from(cause) : failed(cause);
  };
  const router = createConnectRouter({
    grpc: false,
    ...NO_COMPRESSION,
    // A misspelled name is an error.
    jsonOptions: { ignoreUnknownFields: false, registry: DETAILS },
    requestGate: async (context) => {
      try {
        await carriedBy(context).call.enter(pathAndStream(context.method));
      } catch (cause) {
        throw failed(cause);
      }
    },
  });
  for (const { service, implementation } of served) {
    for (const method of service.methods)
      serveMethod(router, method, { implementation: implementation[method.localName], thrown });
  }
  const handlers = new Map(router.handlers.map((handler) => [handler.requestPath, handler]));
  return {
    handle: (path, call) => {
      const handler = handlers.get(path);
      if (handler === undefined) return "unknown";
      void respond(handler, call, { ...ports, failed });
      return "handled";
    },
  };
}

type Router = ReturnType<typeof createConnectRouter>;

type Served = {
  readonly implementation: unknown;
  /** Throws what the library makes an answer of. */
  readonly thrown: (cause: unknown) => never;
};

function serveMethod(router: Router, method: DescMethod, { implementation, thrown }: Served): void {
  const messageOf = (bytes: Uint8Array) => fromBinary(method.output, bytes);
  if (method.methodKind === "unary") {
    router.rpc(method as DescMethod & { methodKind: "unary" }, async (_request, context) => {
      const call = httpCall(context);
      return await call.answer(implementation as handleUnaryCall<Decoded, Buffer>).then(messageOf, thrown);
    });
  } else if (method.methodKind === "server_streaming") {
    router.rpc(method as DescMethod & { methodKind: "server_streaming" }, async function* (_request, context) {
      const messages = httpCall(context).messages(implementation as handleServerStreamingCall<Decoded, Buffer>);
      try {
        for await (const bytes of messages) yield messageOf(bytes);
      } catch (cause) {
        thrown(cause);
      }
    });
  } else throw new Error(`${method.name}: only one request a call is served here`);
}

function httpCall(context: HandlerContext): HttpCall {
  const { call, decoded } = carriedBy(context);
  if (decoded === null) throw new Error("the request was not read");
  const { metadata, peer } = call;
  const onHeader = (header: Metadata) => {
    for (const [name, value] of Object.entries(header.getMap())) context.responseHeader.set(name, String(value));
  };
  return new HttpCall({ metadata, peer, request: decoded, signal: context.signal, onHeader });
}

/** The reason of a call's signal: its client has left, or its deadline has passed. */
function hasLeft(cause: unknown): boolean {
  return cause instanceof ConnectError || (cause as { readonly name?: unknown } | undefined)?.name === "AbortError";
}

function carriedBy(context: Pick<HandlerContext, "values">): Carried {
  const carried = context.values.get(CARRIED);
  if (carried === null) throw new Error("the call came past the listener");
  return carried;
}

function pathAndStream(method: DescMethod) {
  return {
    path: `/${method.parent.typeName}/${method.name}`,
    responseStream: method.methodKind === "server_streaming",
  };
}

/**
 * Hands a request to the library with an empty message in place of its own, which is read and decoded here: the
 * library knows neither the limits of fields nor how many bytes a caller has paid for.
 */
async function respond(
  handler: Handler,
  call: WebCall,
  { body: bounds, clock, onInternalError, failed }: RoutesPorts & { readonly failed: (cause: unknown) => Error },
): Promise<void> {
  const { request, response } = call;
  const carried: Carried = { call, decoded: null };
  let isBroken = false;
  const form = formOf(request.headers["content-type"] ?? "");
  const body = async function* () {
    try {
      carried.decoded = await readRequest(request, { method: handler.method, form, bounds }, clock);
    } catch (cause) {
      isBroken = true;
      throw failed(cause);
    }
    yield emptyMessage(form);
  };
  try {
    const values = createContextValues().set(CARRIED, carried);
    const universal = universalRequestFromNodeRequest(request, response, undefined, values);
    // They tell of the body that was replaced.
    universal.header.delete("content-length");
    const answered = await handler({ ...universal, body: body() });
    if (carried.decoded === null) skipBody(response, isBroken);
    const parts = answered.body === undefined ? answered : { ...answered, body: call.deliver(answered.body) };
    await universalResponseToNodeResponse(parts, response);
  } catch (cause) {
    if (response.destroyed || response.writableEnded) return;
    toStatus(cause, onInternalError);
    response.destroy();
  }
}
