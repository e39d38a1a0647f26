import type { Http2Stream, IncomingHttpHeaders, ServerHttp2Stream } from "node:http2";
import type { Server } from "@grpc/grpc-js";
import { listenersOf } from "./connection-bounds.ts";

/** Streams of these services never end by themselves, and their clients lose nothing when they are cut. */
const NEVER_END = /^\/grpc\.(health|reflection)\./;

/** The calls of a server that is bound, from their headers on until their last byte has left. */
export class CallsUnderWay {
  readonly #open = new Set<Http2Stream>();
  readonly #listeners = new Set<() => void>();

  constructor(server: Server) {
    for (const listener of listenersOf(server)) {
      listener.on("stream", (stream: ServerHttp2Stream, headers: IncomingHttpHeaders) => {
        if (!NEVER_END.test(headers[":path"] ?? "")) this.#follow(stream);
      });
    }
  }

  #follow(stream: Http2Stream): void {
    this.#open.add(stream);
    stream.once("close", () => {
      this.#open.delete(stream);
      if (this.#open.size === 0) for (const listener of this.#listeners) listener();
    });
  }

  /** Resolves once no call is under way. */
  ended(): Promise<void> {
    if (this.#open.size === 0) return Promise.resolve();
    return new Promise((resolve) => {
      this.#listeners.add(resolve);
    });
  }
}
