/**
 * Takes calls of gRPC and makes the same calls over HTTP in JSON, so that tests of the API run unchanged through the
 * listener for browsers. A request that JSON cannot hold, such as broken bytes, goes there in the binary form.
 */
import { Agent, request as httpRequest, type IncomingMessage } from "node:http";
import {
  create,
  createRegistry,
  type DescMethod,
  equals,
  fromBinary,
  fromJsonString,
  toBinary,
  toJsonString,
} from "@bufbuild/protobuf";
import { type Any, AnySchema } from "@bufbuild/protobuf/wkt";
import {
  Client,
  credentials,
  type handleBidiStreamingCall,
  type handleServerStreamingCall,
  type handleUnaryCall,
  Metadata,
  Server,
  ServerCredentials,
  type StatusObject,
  status,
} from "@grpc/grpc-js";
import { findWireErrors } from "../../../src/api/rpc/find-wire-errors.ts";
import { SERVICES } from "../../../src/api/services.ts";
import { JSON_VALUES_MAX } from "../../../src/api/web/decode-json.ts";
import { file_google_rpc_error_details } from "../../../src/gen/google/rpc/error_details_pb.ts";
import { StatusSchema } from "../../../src/gen/google/rpc/status_pb.ts";
import { Health } from "../../../src/gen/grpc/health/v1/health_pb.ts";
import { ServerReflection } from "../../../src/gen/grpc/reflection/v1/reflection_pb.ts";

const registry = createRegistry(file_google_rpc_error_details);
const BYTES_MAX = 64 * 1024 * 1024;
/** These are of the connection between test and bridge. */
const OWN_HEADERS: ReadonlySet<string> = new Set(["user-agent", "grpc-accept-encoding", "accept-encoding", "te"]);

export type Bridge = { readonly address: string; readonly close: () => void };

/** A gRPC server in front of the listener at `url`. Health and reflection are of gRPC alone, at `grpc`. */
export async function startBridge(url: string, grpc: string): Promise<Bridge> {
  const server = new Server({ "grpc.max_receive_message_length": BYTES_MAX });
  const client = new Client(grpc, credentials.createInsecure());
  const agent = new Agent({ keepAlive: true });
  const add = (methods: readonly DescMethod[], handle: (method: DescMethod) => unknown) => {
    server.addService(
      Object.fromEntries(methods.map((method) => [method.localName, definition(method)])),
      Object.fromEntries(methods.map((method) => [method.localName, handle(method) as never])),
    );
  };
  for (const { methods } of SERVICES) add(methods, (method) => handler({ url, agent }, method));
  for (const { methods } of [Health, ServerReflection]) add(methods, (method) => passOn(client, method));
  const port = await new Promise<number>((resolve, reject) => {
    server.bindAsync("127.0.0.1:0", ServerCredentials.createInsecure(), (error, bound) =>
      error === null ? resolve(bound) : reject(error),
    );
  });
  const close = () => {
    server.forceShutdown();
    client.close();
    agent.destroy();
  };
  return { address: `127.0.0.1:${port}`, close };
}

const same = (bytes: Buffer) => bytes;

function definition(method: DescMethod) {
  return {
    path: `/${method.parent.typeName}/${method.name}`,
    requestStream: method.methodKind === "bidi_streaming",
    responseStream: method.methodKind !== "unary",
    requestSerialize: same,
    requestDeserialize: same,
    responseSerialize: same,
    responseDeserialize: same,
  };
}

/** Calls the same method over gRPC. */
function passOn(client: Client, method: DescMethod) {
  const { path } = definition(method);
  const unary: handleUnaryCall<Buffer, Buffer> = (call, callback) => {
    const out = client.makeUnaryRequest(path, same, same, call.request, call.metadata, (error, answer) =>
      callback(error, answer),
    );
    out.on("metadata", (metadata) => call.sendMetadata(metadata));
  };
  const streaming: handleServerStreamingCall<Buffer, Buffer> = (call) => {
    const out = client.makeServerStreamRequest(path, same, same, call.request, call.metadata);
    call.on("cancelled", () => out.cancel());
    out.on("data", (bytes) => call.write(bytes)).on("error", (error) => call.emit("error", error));
    out.on("end", () => call.end());
  };
  const both: handleBidiStreamingCall<Buffer, Buffer> = (call) => {
    const out = client.makeBidiStreamRequest(path, same, same, call.metadata);
    call.on("cancelled", () => out.cancel());
    call.on("data", (bytes: Buffer) => out.write(bytes)).on("end", () => out.end());
    out.on("data", (bytes) => call.write(bytes)).on("error", (error) => call.emit("error", error));
    out.on("end", () => call.end());
  };
  return { unary, server_streaming: streaming, bidi_streaming: both, client_streaming: both }[method.methodKind];
}

type Target = { readonly url: string; readonly agent: Agent };

function handler(target: Target, method: DescMethod) {
  const unary: handleUnaryCall<Buffer, Buffer> = (call, callback) => {
    const sent = new Sent(method, call.request);
    post({ ...target, sent, metadata: call.metadata, deadline: call.getDeadline() }, call).then(
      async (response) => {
        call.sendMetadata(headersOf(response));
        const body = await whole(response);
        if (response.statusCode === 200) callback(null, sent.answer(body));
        else callback(failureOf(body, response));
      },
      () => callback(lost()),
    );
  };
  const streaming: handleServerStreamingCall<Buffer, Buffer> = (call) => {
    const sent = new Sent(method, call.request);
    const run = async () => {
      const response = await post({ ...target, sent, metadata: call.metadata, deadline: call.getDeadline() }, call);
      if (response.statusCode !== 200) return failureOf(await whole(response), response);
      for await (const { flags, body } of envelopes(response)) {
        if (flags === 2) return endOf(body);
        if (!call.write(sent.answer(body))) await new Promise((resolve) => call.once("drain", resolve));
      }
      return lost();
    };
    run()
      .catch(lost)
      .then((failure) => (failure === null ? call.end() : call.emit("error", failure)));
  };
  return method.methodKind === "unary" ? unary : streaming;
}

/** A request in JSON if that can hold it, and how its answers are read. */
export class Sent {
  readonly method: DescMethod;
  readonly body: Buffer;
  readonly isJson: boolean;

  constructor(method: DescMethod, bytes: Buffer) {
    this.method = method;
    const json = jsonOf(method, bytes);
    this.isJson = json !== null;
    this.body = json === null ? bytes : Buffer.from(json);
  }

  get contentType(): string {
    const form = this.isJson ? "json" : "proto";
    return this.method.methodKind === "unary" ? `application/${form}` : `application/connect+${form}`;
  }

  get framed(): Buffer {
    if (this.method.methodKind === "unary") return this.body;
    const head = Buffer.alloc(5);
    head.writeUInt32BE(this.body.length, 1);
    return Buffer.concat([head, this.body]);
  }

  answer(body: Buffer): Buffer {
    if (!this.isJson) return body;
    const message = fromJsonString(this.method.output, body.toString(), { registry });
    return Buffer.from(toBinary(this.method.output, message));
  }
}

/** Null: JSON does not hold what these bytes are. */
function jsonOf({ input }: DescMethod, bytes: Buffer): string | null {
  try {
    // The decoder makes null of a value without a kind, which the service refuses.
    if (findWireErrors(input, bytes).length > 0) return null;
    const message = fromBinary(input, bytes, { readUnknownFields: false });
    const json = toJsonString(input, message);
    // To compare maps of so many entries takes seconds.
    if (json.split(",").length >= JSON_VALUES_MAX / 2) return null;
    return equals(input, message, fromJsonString(input, json)) ? json : null;
  } catch {
    return null;
  }
}

type Post = Target & {
  readonly sent: Sent;
  readonly metadata: Metadata;
  readonly deadline: Date | number;
};

function post(
  { url, agent, sent, metadata, deadline }: Post,
  call: { readonly on: (event: "cancelled", listener: () => void) => unknown },
): Promise<IncomingMessage> {
  const { method } = sent;
  const names = Object.keys(metadata.getMap()).filter((name) => !OWN_HEADERS.has(name));
  const leftMs = Math.ceil(Number(deadline) - Date.now());
  return new Promise((resolve, reject) => {
    const request = httpRequest(`${url}/${method.parent.typeName}/${method.name}`, {
      method: "POST",
      agent,
      headers: {
        ...Object.fromEntries(names.map((name) => [name, metadata.get(name).map(String)])),
        "content-type": sent.contentType,
        ...(Number.isFinite(leftMs) && leftMs > 0 ? { "connect-timeout-ms": leftMs } : {}),
      },
    });
    call.on("cancelled", () => request.destroy());
    request.on("response", resolve).on("error", reject).end(sent.framed);
  });
}

function headersOf({ headers }: IncomingMessage): Metadata {
  const metadata = new Metadata();
  for (const name of ["x-request-id", "gangway-version"]) {
    const value = headers[name];
    if (value !== undefined) metadata.set(name, String(value));
  }
  return metadata;
}

async function whole(response: IncomingMessage): Promise<Buffer> {
  return Buffer.concat(await response.toArray());
}

async function* envelopes(response: IncomingMessage) {
  let rest = Buffer.alloc(0);
  for await (const chunk of response) {
    rest = Buffer.concat([rest, chunk as Buffer]);
    while (rest.length >= 5 && rest.length >= 5 + rest.readUInt32BE(1)) {
      const end = 5 + rest.readUInt32BE(1);
      yield { flags: rest[0], body: rest.subarray(5, end) };
      rest = rest.subarray(end);
    }
  }
}

export type ConnectJson = {
  readonly code: string;
  readonly message?: string;
  readonly details?: readonly { readonly type: string; readonly value: string; readonly debug?: unknown }[];
};

function endOf(body: Buffer): Partial<StatusObject> | null {
  const { error } = JSON.parse(body.toString()) as { readonly error?: ConnectJson };
  return error === undefined ? null : statusOf(error);
}

function failureOf(body: Buffer, { statusCode }: IncomingMessage): Partial<StatusObject> {
  if (body.length === 0) return { code: status.UNKNOWN, details: `HTTP status ${statusCode}` };
  return statusOf(JSON.parse(body.toString()) as ConnectJson);
}

export function statusOf({ code: name, message = "", details = [] }: ConnectJson): Partial<StatusObject> {
  const code = status[(name === "canceled" ? "CANCELLED" : name.toUpperCase()) as keyof typeof status];
  const packed = details.map(({ type, value }): Any => {
    return create(AnySchema, { typeUrl: `type.googleapis.com/${type}`, value: Buffer.from(value, "base64") });
  });
  const metadata = new Metadata();
  if (packed.length > 0) {
    const whole = create(StatusSchema, { code, message, details: packed });
    metadata.set("grpc-status-details-bin", Buffer.from(toBinary(StatusSchema, whole)));
  }
  return { code, details: message, metadata };
}

function lost(): Partial<StatusObject> {
  return { code: status.UNAVAILABLE, details: "the connection was lost" };
}
