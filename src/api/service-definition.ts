import {
  type DescMessage,
  type DescMethod,
  type DescService,
  fromBinary,
  type Message,
  toBinary,
} from "@bufbuild/protobuf";
import type { MethodDefinition, ServiceDefinition } from "@grpc/grpc-js";

/** What became of a request's bytes. A deserializer that throws would make grpc-js answer INTERNAL. */
export type Decoded =
  | { readonly kind: "message"; readonly message: Message }
  | { readonly kind: "undecodable"; readonly problem: string };

/** A protobuf-es service as grpc-js wants it; its requests arrive as `Decoded`, its responses are protobuf-es messages. */
export function serviceDefinition(service: DescService): ServiceDefinition {
  return Object.fromEntries(service.methods.map((method) => [method.localName, methodDefinition(method)]));
}

function methodDefinition(method: DescMethod): MethodDefinition<Decoded, Message> {
  const streams = method.methodKind;
  return {
    path: `/${method.parent.typeName}/${method.name}`,
    requestStream: streams === "client_streaming" || streams === "bidi_streaming",
    responseStream: streams === "server_streaming" || streams === "bidi_streaming",
    requestSerialize: (request) => encode(method.input, request.kind === "message" ? request.message : undefined),
    requestDeserialize: (bytes) => decode(method.input, bytes),
    responseSerialize: (response) => encode(method.output, response),
    responseDeserialize: (bytes) => fromBinary(method.output, bytes),
  };
}

function decode(schema: DescMessage, bytes: Uint8Array): Decoded {
  try {
    return { kind: "message", message: fromBinary(schema, bytes) };
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    return { kind: "undecodable", problem: `request is not a valid ${schema.typeName} message: ${why}` };
  }
}

function encode(schema: DescMessage, message: Message | undefined): Buffer {
  if (message === undefined) return Buffer.alloc(0);
  const bytes = toBinary(schema, message);
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
