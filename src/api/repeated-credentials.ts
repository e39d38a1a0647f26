import type { Http2Stream, IncomingHttpHeaders } from "node:http2";
import type { Server } from "@grpc/grpc-js";
import { listenersOf } from "./connection-bounds.ts";

const HEADER = "authorization";

/** What Node passes on with each call: the headers as it has read them, and as names and values in turn. */
type StreamListener = (
  stream: Http2Stream,
  headers: IncomingHttpHeaders,
  flags: number,
  raw: readonly string[],
) => void;

/**
 * Shows calls all headers `authorization` that their clients have sent. Of several, Node keeps the first and drops the
 * others, so a call would be judged by another one than a proxy on its way may have seen. Authentication refuses more
 * than one. Call it when the server is bound.
 */
export function keepRepeatedCredentials(server: Server): void {
  const keepAll: StreamListener = (_stream, headers, _flags, raw) => {
    const sent = raw.filter((_value, at) => at % 2 === 1 && raw[at - 1] === HEADER);
    if (sent.length > 1) Object.assign(headers, { [HEADER]: sent });
  };
  // Before grpc-js reads the headers.
  for (const listener of listenersOf(server)) listener.prependListener("stream", keepAll);
}
