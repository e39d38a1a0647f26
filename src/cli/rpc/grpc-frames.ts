/** The frames and the statuses of gRPC: https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md */
import type { IncomingHttpHeaders, IncomingHttpStatusHeader } from "node:http2";
import { CallError, STATUS } from "./call-error.ts";

export type FrameLimits = { readonly sentBytesMax: number; readonly receivedBytesMax: number };

/** The parts of an answer beside its messages. Null: the part did not come. */
export type Answer = {
  readonly headers: (IncomingHttpHeaders & IncomingHttpStatusHeader) | null;
  readonly trailers: IncomingHttpHeaders | null;
};

/** A byte that says whether the message is compressed, and four with its length. */
const PREFIX_BYTES = 5;

/** A message as the body of a call. */
export function frameOf(message: Uint8Array, { sentBytesMax }: FrameLimits): Buffer {
  if (message.length > sentBytesMax) {
    const details = `the request has ${message.length} bytes, and may have at most ${sentBytesMax}`;
    throw new CallError(STATUS.RESOURCE_EXHAUSTED, details, { isSent: false });
  }
  const frame = Buffer.alloc(PREFIX_BYTES + message.length);
  frame.writeUInt32BE(message.length, 1);
  frame.set(message, PREFIX_BYTES);
  return frame;
}

/** Takes an answer apart into its messages. Throws a CallError if it is none of gRPC. */
export function newFrameReader({ receivedBytesMax }: FrameLimits) {
  let chunks: Buffer[] = [];
  let bytes = 0;
  /** How many bytes the next message needs with its prefix. */
  let needed = PREFIX_BYTES;
  return {
    *take(chunk: Buffer): Generator<Uint8Array> {
      chunks.push(chunk);
      bytes += chunk.length;
      while (bytes >= needed) {
        const all = chunks.length === 1 && chunks[0] !== undefined ? chunks[0] : Buffer.concat(chunks, bytes);
        chunks = [all];
        const end = PREFIX_BYTES + lengthOf(all, receivedBytesMax);
        needed = end;
        if (bytes < end) break;
        yield all.subarray(PREFIX_BYTES, end);
        chunks = bytes === end ? [] : [all.subarray(end)];
        bytes -= end;
        needed = PREFIX_BYTES;
      }
    },
    /** Throws if a message was cut off. */
    end(): void {
      if (bytes > 0) throw new CallError(STATUS.INTERNAL, "the answer ends within a message");
    },
  };
}

function lengthOf(frame: Buffer, receivedBytesMax: number): number {
  if (frame[0] !== 0) throw new CallError(STATUS.INTERNAL, "the answer is compressed, which was not asked for");
  const length = frame.readUInt32BE(1);
  if (length <= receivedBytesMax) return length;
  const details = `the answer has ${length} bytes, and may have at most ${receivedBytesMax}`;
  throw new CallError(STATUS.RESOURCE_EXHAUSTED, details);
}

/** The status of an answer as an error; null if it is OK. `cause` says why the answer broke off. Null: it did not. */
export function statusError({ headers, trailers }: Answer, cause: string | null): CallError | null {
  // An answer without messages has its status in the headers.
  const told = trailers?.["grpc-status"] === undefined ? headers : trailers;
  const code = told?.["grpc-status"];
  if (typeof code === "string" && /^\d{1,3}$/.test(code)) {
    if (Number(code) === STATUS.OK) return null;
    const encoded = told?.["grpc-status-details-bin"];
    const encodedStatus = typeof encoded === "string" ? Buffer.from(encoded, "base64") : null;
    return new CallError(Number(code), percentDecoded(told?.["grpc-message"]), { encodedStatus });
  }
  if (headers !== null && !isGrpc({ headers })) return notGrpc(headers[":status"] ?? 0);
  return new CallError(STATUS.UNAVAILABLE, `the connection was lost: ${cause ?? "the answer has no status"}`);
}

/** False for the answer of a proxy or of another server. */
export function isGrpc({ headers }: Pick<Answer, "headers">): boolean {
  return headers?.[":status"] === 200;
}

function notGrpc(httpStatus: number): CallError {
  const away = [429, 502, 503, 504].includes(httpStatus);
  const details = `the server answered with HTTP status ${httpStatus}, which is not gRPC`;
  return new CallError(away ? STATUS.UNAVAILABLE : STATUS.UNKNOWN, details);
}

function percentDecoded(text: unknown): string {
  if (typeof text !== "string") return "";
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
