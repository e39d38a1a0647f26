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
import type { FieldNote } from "../../core/job/request/sent.ts";
import { findPassedBound } from "./find-passed-bound.ts";
import { findWireErrors } from "./find-wire-errors.ts";

/** Methods each item of whose named field has an answer of its own, and is checked by the handler. */
export const ITEMS_WITH_ANSWERS: Readonly<Record<string, string>> = {
  "gangway.v1.JobService.BatchCreateJobs": "requests",
};

/** The result of decoding a request. If a deserializer threw, grpc-js would answer INTERNAL. */
export type Decoded = { readonly bytes: number } & DecodedMessage;

type DecodedMessage =
  | {
      readonly kind: "message";
      readonly message: Message;
      /** Items that pass a limit, which the message has without their fields. Paths start at the item. */
      readonly passedItems: ReadonlyMap<number, FieldNote>;
    }
  | Undecoded;

type Undecoded =
  | { readonly kind: "beyondLimit"; readonly notes: readonly FieldNote[] }
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
  const decode = requestDecoder(method);
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

/** Returns how the bytes of a request of the method are decoded. */
export function requestDecoder(method: DescMethod): (bytes: Uint8Array) => Decoded {
  return decoder(method.input, ITEMS_WITH_ANSWERS[`${method.parent.typeName}.${method.name}`]);
}

const NO_ITEMS: ReadonlyMap<number, FieldNote> = new Map();
/** Fields that this version does not know are not kept: a request may have millions of them. */
const READ_OPTIONS = { readUnknownFields: false };

function decoder(schema: DescMessage, itemsOf: string | undefined): (bytes: Uint8Array) => Decoded {
  const decode = (
    bytes: Uint8Array,
    isLossy: boolean,
  ): { readonly kind: "message"; readonly message: Message } | Undecoded => {
    try {
      const message = fromBinary(schema, bytes, READ_OPTIONS);
      const notes = isLossy ? findWireErrors(schema, bytes) : [];
      return notes.length === 0 ? { kind: "message", message } : { kind: "invalid", notes };
    } catch (cause) {
      const notes = findWireErrors(schema, bytes);
      if (notes.length > 0) return { kind: "invalid", notes };
      const why = cause instanceof Error ? cause.message : String(cause);
      return { kind: "undecodable", problem: `the request is not a valid ${schema.typeName} message: ${why}` };
    }
  };
  const within = (bytes: Uint8Array): DecodedMessage => {
    const bounds = findPassedBound(schema, bytes, itemsOf);
    if (bounds.kind === "passed") return { kind: "beyondLimit", notes: [bounds.note] };
    const { passedItems: passed, hasEmptyValue } = bounds;
    const decoded = decode(passed?.bytes ?? bytes, hasEmptyValue);
    return decoded.kind === "message" ? { ...decoded, passedItems: passed?.notes ?? NO_ITEMS } : decoded;
  };
  return (bytes) => ({ ...within(bytes), bytes: bytes.length });
}
