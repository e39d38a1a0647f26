/**
 * Decompresses the messages of requests: after their caller has paid for all bytes that come out, and within a size
 * and a ratio. Otherwise a hundred small messages would fill the memory before any limit of their caller counts.
 */
import { promisify } from "node:util";
import { gunzip, inflate } from "node:zlib";
import { type ServerInterceptingCallInterface, status } from "@grpc/grpc-js";
import { invariant } from "../../runtime/assert.ts";
import type { Semaphore } from "../../runtime/semaphore.ts";
import { errorInfo } from "./error-details.ts";
import { RpcError, toStatus } from "./rpc-error.ts";

/** Manifests come to a tenth of their size. Zeros come to a thousandth, which no request needs. */
const RATIO_MAX = 100;
/** A message of this size may have any ratio: batches of one job many times are like that. */
const SMALL_BYTES = 1024 * 1024;
/** Messages that are decompressed at a time, of all callers: each may take all the bytes of a request. */
export const DECOMPRESSED_AT_A_TIME = 4;
/** The compressed flag and the length, before each message. */
const HEAD_BYTES = 5;
/** The head and the trailer of gzip (RFC 1952). The trailer ends with the size of what was compressed. */
const GZIP_BYTES_MIN = 18;
const SIZE_BYTES = 4;
const TOO_LONG = "ERR_BUFFER_TOO_LARGE";

const unzip = { gzip: promisify(gunzip), deflate: promisify(inflate) };
type Encoding = keyof typeof unzip;

export type DecompressionOptions = {
  /** The most bytes of a message. */
  readonly bytesMax: number;
  /** True: the client streams its requests. Other calls have one message. */
  readonly isStream: boolean;
  /** Counts bytes of the request. Throws if they are beyond a limit of the caller. */
  readonly pay: (bytes: number) => Promise<void>;
  readonly turns: Semaphore;
  readonly onInternalError: (reference: string, cause: unknown) => void;
};

/** grpc-js hands it to no interceptor. It is private in its types. */
type Decompressing = { decompressMessage?: (message: Buffer, encoding: string) => Buffer | Promise<Buffer> };

/** Lets the innermost call of grpc-js decompress its messages here. */
export function boundDecompression(call: ServerInterceptingCallInterface, options: DecompressionOptions): void {
  const inner = call as Decompressing;
  const own = inner.decompressMessage?.bind(call);
  invariant(own !== undefined, "a call of grpc-js decompresses its messages");
  let messages = 0;
  inner.decompressMessage = (message, encoding) => {
    if (encoding !== "gzip" && encoding !== "deflate") return own(message, encoding);
    messages += 1;
    if (messages > 1 && !options.isStream) return refused(new RpcError(status.UNIMPLEMENTED, "too many messages"));
    return decompress(message.subarray(HEAD_BYTES), encoding, options).catch((cause: unknown) => {
      if (cause instanceof Unreadable) return Promise.reject(UNREADABLE);
      return refused(cause, options);
    });
  };
}

async function decompress(
  bytes: Buffer,
  encoding: Encoding,
  { bytesMax, pay, turns }: DecompressionOptions,
): Promise<Buffer> {
  const size = sizeOf(bytes, encoding, bytesMax);
  await pay(size);
  try {
    return await turns.run(() => unzip[encoding](bytes, { maxOutputLength: Math.max(size, 1) }));
  } catch (cause) {
    if ((cause as { readonly code?: unknown }).code !== TOO_LONG) throw new Unreadable();
    throw encoding === "gzip" ? tooLarge(`has more bytes than the ${size} that it names`) : tooDense();
  }
}

/** The bytes that a message says it has, or that it may have. */
function sizeOf(bytes: Buffer, encoding: Encoding, bytesMax: number): number {
  const sizeMax = Math.min(bytes.length * RATIO_MAX, bytesMax);
  if (encoding === "deflate") return sizeMax;
  if (bytes.length < GZIP_BYTES_MIN) throw new Unreadable();
  const size = bytes.readUInt32LE(bytes.length - SIZE_BYTES);
  if (size > bytesMax) throw tooLarge(`has ${size} bytes, and at most ${bytesMax} are allowed`);
  if (size > Math.max(sizeMax, SMALL_BYTES)) throw tooDense();
  return size;
}

/** Bytes that are not compressed as the call says. */
class Unreadable extends Error {
  override readonly name = "Unreadable";
}

/** As grpc-js says it. */
const UNREADABLE = { code: status.INTERNAL, details: "Failed to decompress message" };

function tooDense(): RpcError {
  return tooLarge(`has more than ${RATIO_MAX} times the bytes of its compressed form; send it without compression`);
}

function tooLarge(what: string): RpcError {
  const details = [errorInfo("COMPRESSED_TOO_FAR", { ratio: String(RATIO_MAX) })];
  return new RpcError(
    status.RESOURCE_EXHAUSTED,
    `the request is refused before it is read: decompressed it ${what}`,
    details,
  );
}

function refused(
  cause: unknown,
  { onInternalError }: Pick<DecompressionOptions, "onInternalError"> = { onInternalError: () => {} },
): Promise<never> {
  const { code, message, metadata } = toStatus(cause, onInternalError);
  return Promise.reject({ code, details: message, metadata });
}
