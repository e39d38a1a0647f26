import {
  create,
  type DescMessage,
  type DescMethod,
  type DescService,
  fromBinary,
  type Message,
  type MessageInitShape,
  toBinary,
} from "@bufbuild/protobuf";
import type { MethodDefinition, ServiceDefinition } from "@grpc/grpc-js";

/** The result of decoding a request. If a deserializer threw, grpc-js would answer INTERNAL. */
export type Decoded =
  | { readonly kind: "message"; readonly message: Message }
  | { readonly kind: "undecodable"; readonly problem: string };

/**
 * Converts a protobuf-es service to a service of grpc-js. Requests arrive as `Decoded`; responses are bytes that
 * `encode` has made.
 */
export function serviceDefinition(service: DescService): ServiceDefinition {
  return Object.fromEntries(service.methods.map((method) => [method.localName, methodDefinition(method)]));
}

/** Encodes a response. Throws if a value does not fit its field, so that the caller can turn it into a status. */
export function encode(schema: DescMessage, message: MessageInitShape<DescMessage>): Buffer {
  const bytes = toBinary(schema, create(schema, message));
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

/** The server uses only `requestDeserialize` and `responseSerialize`; grpc-js demands all four. */
function methodDefinition(method: DescMethod): MethodDefinition<Decoded, Buffer> {
  const streams = method.methodKind;
  return {
    path: `/${method.parent.typeName}/${method.name}`,
    requestStream: streams === "client_streaming" || streams === "bidi_streaming",
    responseStream: streams === "server_streaming" || streams === "bidi_streaming",
    requestSerialize: (decoded) =>
      decoded.kind === "message" ? encode(method.input, decoded.message) : Buffer.alloc(0),
    requestDeserialize: (bytes) => decode(method.input, bytes),
    responseSerialize: (response) => response,
    responseDeserialize: (bytes) => bytes,
  };
}

function decode(schema: DescMessage, bytes: Uint8Array): Decoded {
  try {
    return { kind: "message", message: fromBinary(schema, bytes) };
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    return { kind: "undecodable", problem: `the request is not a valid ${schema.typeName} message: ${why}` };
  }
}
