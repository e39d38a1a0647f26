/** Makes the server of HTTP for browsers, with bounds for its connections. */
import { createServer, type Server } from "node:http";
import { createSecureServer, type Http2SecureServer, type ServerHttp2Session } from "node:http2";
import type { Socket } from "node:net";
import type { ServerTls } from "../../runtime/server-tls.ts";
import { type ConnectionBounds, HANDSHAKE_MS, PATIENCE } from "../connection-bounds.ts";

export type WebServer = Server | Http2SecureServer;

/** The headers of a request arrive within `HANDSHAKE_MS`, and its body within this time after them. */
export const BODY_MS = 30_000;
/** Node itself ends a request then that no bound of ours has ended. */
const REQUEST_MS = HANDSHAKE_MS + BODY_MS + 5_000;
const CHECK_MS = 2_000;
/** Half-open connections of streams are noticed and freed. */
const KEEP_ALIVE_MS = 40_000;

/** HTTP/2 and HTTP/1.1 with TLS, HTTP/1.1 without: browsers speak no HTTP/2 in the clear. */
export function createWebServer(
  tls: ServerTls | null,
  { connectionsMax, callsMax, idleMs }: Omit<ConnectionBounds, "ageMs">,
): WebServer {
  const bounds = { headersTimeout: HANDSHAKE_MS, requestTimeout: REQUEST_MS, keepAliveTimeout: idleMs };
  const alive = { keepAlive: true, keepAliveInitialDelay: KEEP_ALIVE_MS, noDelay: true };
  const checks = { connectionsCheckingInterval: CHECK_MS };
  if (tls === null) {
    return Object.assign(createServer({ ...bounds, ...alive, ...checks }), { maxConnections: connectionsMax });
  }
  const { cert, key, minVersion, ciphers } = tls.context();
  const server = createSecureServer({
    ...{ cert, key, minVersion, ciphers },
    ...alive,
    ...PATIENCE,
    allowHTTP1: true,
    handshakeTimeout: HANDSHAKE_MS,
    settings: { maxConcurrentStreams: callsMax },
  });
  tls.onChange((context) => server.setSecureContext({ ...context }));
  server.on("session", (session) => boundSession(session, idleMs));
  // Node reads these members of the server once it listens.
  return Object.assign(server, { ...bounds, ...checks, maxConnections: connectionsMax });
}

/** Closes a connection of HTTP/2 that is silent: from its start, or for long after its last call. */
function boundSession(session: ServerHttp2Session, idleMs: number): void {
  let open = 0;
  session.setTimeout(HANDSHAKE_MS);
  session.on("stream", (stream) => {
    open += 1;
    session.setTimeout(idleMs);
    stream.once("close", () => {
      open -= 1;
    });
  });
  session.on("timeout", () => {
    if (open === 0) session.destroy();
  });
}

/** The connections of a server that are open. */
export class OpenConnections {
  readonly #sockets = new Set<Socket>();
  readonly #sessions = new Set<ServerHttp2Session>();

  constructor(server: WebServer) {
    server.on("connection", (socket: Socket) => {
      this.#sockets.add(socket);
      socket.once("close", () => this.#sockets.delete(socket));
    });
    if (!("setSecureContext" in server)) return;
    server.on("session", (session: ServerHttp2Session) => {
      this.#sessions.add(session);
      session.once("close", () => this.#sessions.delete(session));
    });
  }

  get count(): number {
    return this.#sockets.size;
  }

  /** Tells clients of HTTP/2 that their connections take no more calls. */
  sayGoodbye(): void {
    for (const session of this.#sessions) session.close();
  }

  destroy(): void {
    for (const socket of this.#sockets) socket.destroy();
  }
}
