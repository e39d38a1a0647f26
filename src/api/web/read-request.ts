/** Reads the message of a request within bounds, and decodes it as the gRPC port decodes messages. */
import type { IncomingMessage } from "node:http";
import type { Http2ServerRequest } from "node:http2";
import type { DescMethod } from "@bufbuild/protobuf";
import { status } from "@grpc/grpc-js";
import type { Clock } from "../../runtime/clock.ts";
import { errorInfo } from "../rpc/error-details.ts";
import { RpcError } from "../rpc/rpc-error.ts";
import { type Decoded, requestDecoder } from "../rpc/service-definition.ts";
import { decodeJson } from "./decode-json.ts";

export type WebRequest = IncomingMessage | Http2ServerRequest;

/** How a request carries its message, by its content type. */
export type MessageForm = {
  readonly isJson: boolean;
  /** True: the flags and the length of the message stand before it. */
  readonly isEnveloped: boolean;
};

export type BodyBounds = { readonly bytesMax: number; readonly arrivesMs: number };

/** The flags and the length of an enveloped message. */
const HEAD_BYTES = 5;

/** Of a content type that one of the protocols takes. */
export function formOf(contentType: string): MessageForm {
  const type = contentType.toLowerCase();
  return {
    isJson: type.startsWith("application/json") || type.includes("+json"),
    isEnveloped: type.startsWith("application/grpc-web") || type.startsWith("application/connect+"),
  };
}

/** A message without content in this form, which every RPC can read. */
export function emptyMessage({ isJson, isEnveloped }: MessageForm): Uint8Array {
  const content = isJson ? [0x7b, 0x7d] : [];
  return Uint8Array.from(isEnveloped ? [0, 0, 0, 0, content.length, ...content] : content);
}

/** Throws an `RpcError` if the body is too large, too slow, or not one message. */
export async function readRequest(
  request: WebRequest,
  { method, form, bounds }: { readonly method: DescMethod; readonly form: MessageForm; readonly bounds: BodyBounds },
  clock: Pick<Clock, "sleep">,
): Promise<Decoded> {
  const body = await readBody(request, bounds, clock);
  const message = form.isEnveloped ? withoutEnvelope(body) : body;
  if (message === null) {
    const problem = "the request is not one message after its flags and its length, without compression";
    return { kind: "undecodable", problem, bytes: body.length };
  }
  return form.isJson ? decodeJson(method, message) : requestDecoder(method)(message);
}

function withoutEnvelope(body: Buffer): Buffer | null {
  const isOne = body.length >= HEAD_BYTES && body[0] === 0 && body.readUInt32BE(1) === body.length - HEAD_BYTES;
  return isOne ? body.subarray(HEAD_BYTES) : null;
}

/** Throws an `RpcError` if the request says that its body is too large. */
export function checkLength(request: WebRequest, bytesMax: number): void {
  if (Number(request.headers["content-length"] ?? 0) > bytesMax) throw tooLarge(bytesMax);
}

/** Throws an `RpcError` if the body is too large or too slow. */
export async function readBody(
  request: WebRequest,
  { bytesMax, arrivesMs }: BodyBounds,
  clock: Pick<Clock, "sleep">,
): Promise<Buffer> {
  checkLength(request, bytesMax);
  const chunks: Buffer[] = [];
  let bytes = 0;
  const over = new AbortController();
  const arrived = new Promise<Buffer>((resolve, reject) => {
    const fail = (error: Error) => {
      request.off("data", take).pause();
      reject(error);
    };
    const take = (chunk: Buffer) => {
      bytes += chunk.length;
      if (bytes > bytesMax) fail(tooLarge(bytesMax));
      else chunks.push(chunk);
    };
    request.on("data", take);
    request.once("end", () => resolve(Buffer.concat(chunks)));
    request.once("error", fail);
    request.once("close", () => fail(new RpcError(status.CANCELLED, "the request ended before its body")));
    void clock.sleep(arrivesMs, over.signal).then(() => fail(tooSlow(arrivesMs)));
  });
  // Without a reason it would make an error with a stack.
  return await arrived.finally(() => over.abort("arrived"));
}

function tooLarge(bytesMax: number): RpcError {
  const message = `the body of the request has more than ${bytesMax} bytes`;
  return new RpcError(status.RESOURCE_EXHAUSTED, message, [errorInfo("REQUEST_TOO_LARGE", { max: String(bytesMax) })]);
}

function tooSlow(arrivesMs: number): RpcError {
  const message = `the body of the request did not arrive within ${arrivesMs / 1000} s`;
  return new RpcError(status.DEADLINE_EXCEEDED, message, [errorInfo("REQUEST_TOO_SLOW")]);
}
