/** Bounds what the connections of clients may use, so that no client keeps others from the service. */
import type { Http2SecureServer, Http2Server } from "node:http2";
import type { Socket } from "node:net";
import type { Server } from "@grpc/grpc-js";
import { invariant } from "../runtime/assert.ts";
import type { Clock } from "../runtime/clock.ts";

export type ConnectionBounds = {
  /** Connections at a time. The server closes further ones at once. */
  readonly connectionsMax: number;
  /** Calls at a time on one connection. Clients keep further calls back, or get RESOURCE_EXHAUSTED for them. */
  readonly callsMax: number;
  /** A connection without calls for so long is asked to close. Clients connect again with their next call. */
  readonly idleMs: number;
  /** Where clients show certificates, a connection this old is asked to close: withdrawn ones count no longer then. */
  readonly ageMs: number;
};

export const CONNECTION_BOUNDS: ConnectionBounds = {
  connectionsMax: 4_000,
  callsMax: 2_000,
  idleMs: 600_000,
  ageMs: 3_600_000,
};

/** A connection that has not begun to speak HTTP/2, or TLS below it, by then is closed. */
export const HANDSHAKE_MS = 10_000;
const READ_MS = 1_000;
/** The preface of HTTP/2 and the head of the settings frame that follows it (RFC 9113, 3.4). */
const HANDSHAKE_BYTES = 24 + 9;
/**
 * A client that goes beyond one of these loses its connection, with every watch on it.
 *
 * `streamResetBurst` and `streamResetRate` say how many streams a client may reset: at once, and in each second after
 * that. Clients such as grpcurl cancel streams also right after their end, which nghttp2 counts; its defaults are 1,000
 * and 33.
 *
 * `maxSessionRejectedStreams` says how many calls in a row may fail because a connection has `callsMax` calls: a client
 * that begins a call as another ends is often a moment too early. The default of Node is 100.
 *
 * `maxSessionInvalidFrames` counts empty DATA frames and malformed requests over the whole life of a connection; the
 * default of Node is 1,000. A client or proxy that lives for days reaches any such number, so this one is the greatest
 * possible. A flood of these frames still ends: nghttp2 allows 10,000 of them at once, and 330 in each second after
 * that.
 */
export const PATIENCE = {
  streamResetBurst: 50_000,
  streamResetRate: 5_000,
  maxSessionRejectedStreams: 10_000,
  maxSessionInvalidFrames: 2 ** 32 - 1,
};

/** Calls of a connection that was asked to close have this long to end. */
const AGE_GRACE_MS = 30_000;

/** The options of a server of grpc-js with these bounds. `ages`: clients show certificates. */
export function boundOptions({ callsMax, idleMs, ageMs }: ConnectionBounds, ages: boolean) {
  return {
    ...(ages ? { "grpc.max_connection_age_ms": ageMs, "grpc.max_connection_age_grace_ms": AGE_GRACE_MS } : {}),
    // Detects and frees half-open connections of watches within a minute.
    "grpc.keepalive_time_ms": 40_000,
    "grpc.keepalive_timeout_ms": 15_000,
    "grpc.max_concurrent_streams": callsMax,
    "grpc.max_connection_idle_ms": idleMs,
  };
}

/** grpc-js hands neither of them out. Both are private in its types. */
type PrivateParts = {
  /** The options of every HTTP/2 server that it creates. */
  readonly commonServerOptions?: object;
  readonly http2Servers?: ReadonlyMap<Http2Server | Http2SecureServer, unknown>;
};

/** Cuts clients off later than Node does by default. Call it before the server is bound. */
export function bePatient(server: Server): void {
  const { commonServerOptions } = server as unknown as PrivateParts;
  invariant(commonServerOptions !== undefined, "grpc-js has options for its HTTP/2 servers");
  Object.assign(commonServerOptions, PATIENCE);
}

/**
 * Bounds the number of connections, and closes those that stay silent. Call it when the server is bound. `isSecure`:
 * the server speaks TLS, and itself closes connections that do not.
 */
export function boundConnections(
  server: Server,
  { connectionsMax, isSecure }: ConnectionBounds & { readonly isSecure: boolean },
  clock: Pick<Clock, "sleep">,
): void {
  for (const listener of listenersOf(server)) {
    listener.maxConnections = connectionsMax;
    const begins = isSecure ? "secureConnection" : "connection";
    listener.on(begins, (socket: Socket) => void closeIfSilent(socket, clock));
  }
}

/** The HTTP/2 servers of a server that is bound. */
export function listenersOf(server: Server): readonly (Http2Server | Http2SecureServer)[] {
  const { http2Servers } = server as unknown as PrivateParts;
  invariant(http2Servers !== undefined && http2Servers.size > 0, "grpc-js has a bound HTTP/2 server");
  return [...http2Servers.keys()];
}

async function closeIfSilent(socket: Socket, clock: Pick<Clock, "sleep">): Promise<void> {
  const closed = new AbortController();
  socket.once("close", () => closed.abort());
  await clock.sleep(HANDSHAKE_MS, closed.signal);
  // A process that was busy has perhaps not read yet: it reads what has arrived before the second timer ends.
  await clock.sleep(READ_MS, closed.signal);
  if (socket.bytesRead < HANDSHAKE_BYTES) socket.destroy();
}
