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
import type { FieldNote } from "../../core/job/sent.ts";
import { findWireErrors, holdsStruct } from "./find-wire-errors.ts";

/** The result of decoding a request. If a deserializer threw, grpc-js would answer INTERNAL. */
export type Decoded = { readonly bytes: number } & DecodedMessage;

type DecodedMessage =
  | { readonly kind: "message"; readonly message: Message }
  | { readonly kind: "invalid"; readonly notes: readonly FieldNote[] }
  | { readonly kind: "undecodable"; readonly problem: string };

/** A response, or several parts of one, that is encoded already. */
export class Encoded {
  readonly bytes: Buffer;

  private constructor(bytes: Buffer) {
    this.bytes = bytes;
  }

  /** Throws if a value does not fit its field. */
  static of<Schema extends DescMessage>(schema: Schema, message: MessageInitShape<Schema>): Encoded {
    return new Encoded(encode(schema, message));
  }

  /** One message of these parts: repeated fields are joined, and of other fields the last part counts. */
  static joined(parts: readonly Encoded[]): Encoded {
    return new Encoded(Buffer.concat(parts.map(({ bytes }) => bytes)));
  }
}

/**
 * Converts a protobuf-es service to a service of grpc-js. Requests arrive as `Decoded`; responses are bytes that
 * `encode` has made.
 */
export function serviceDefinition(service: DescService): ServiceDefinition {
  return Object.fromEntries(service.methods.map((method) => [method.localName, methodDefinition(method)]));
}

/** Encodes a response. Throws if a value does not fit its field, so that the caller can turn it into a status. */
export function encode(schema: DescMessage, message: MessageInitShape<DescMessage> | Encoded): Buffer {
  if (message instanceof Encoded) return message.bytes;
  const bytes = toBinary(schema, create(schema, message));
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

/** The server uses only `requestDeserialize` and `responseSerialize`; grpc-js demands all four. */
function methodDefinition(method: DescMethod): MethodDefinition<Decoded, Buffer> {
  const streams = method.methodKind;
  const decode = decoder(method.input);
  return {
    path: `/${method.parent.typeName}/${method.name}`,
    requestStream: streams === "client_streaming" || streams === "bidi_streaming",
    responseStream: streams === "server_streaming" || streams === "bidi_streaming",
    requestSerialize: (decoded) =>
      decoded.kind === "message" ? encode(method.input, decoded.message) : Buffer.alloc(0),
    requestDeserialize: decode,
    responseSerialize: (response) => response,
    responseDeserialize: (bytes) => bytes,
  };
}

function decoder(schema: DescMessage): (bytes: Uint8Array) => Decoded {
  const lossy = holdsStruct(schema);
  const decode = (bytes: Uint8Array): DecodedMessage => {
    try {
      const message = fromBinary(schema, bytes);
      const notes = lossy ? findWireErrors(schema, bytes) : [];
      return notes.length === 0 ? { kind: "message", message } : { kind: "invalid", notes };
    } catch (cause) {
      const notes = findWireErrors(schema, bytes);
      if (notes.length > 0) return { kind: "invalid", notes };
      const why = cause instanceof Error ? cause.message : String(cause);
      return { kind: "undecodable", problem: `the request is not a valid ${schema.typeName} message: ${why}` };
    }
  };
  return (bytes) => ({ ...decode(bytes), bytes: bytes.length });
}
