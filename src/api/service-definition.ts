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

/** What became of a request's bytes. A deserializer that throws would make grpc-js answer INTERNAL. */
export type Decoded =
  | { readonly kind: "message"; readonly message: Message }
  | { readonly kind: "undecodable"; readonly problem: string };

/** A protobuf-es service as grpc-js wants it; its requests arrive as `Decoded`, its responses are the bytes that `encode` made. */
export function serviceDefinition(service: DescService): ServiceDefinition {
  return Object.fromEntries(service.methods.map((method) => [method.localName, methodDefinition(method)]));
}

/** A response's bytes. Throws where a value does not fit its field, before grpc-js would answer for us. */
export function encode(schema: DescMessage, message: MessageInitShape<DescMessage>): Buffer {
  const bytes = toBinary(schema, create(schema, message));
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

/** Only the server's halves are of use here: `requestDeserialize` and `responseSerialize`. */
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
    return { kind: "undecodable", problem: `request is not a valid ${schema.typeName} message: ${why}` };
  }
}
