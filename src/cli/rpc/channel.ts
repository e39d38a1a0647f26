/**
 * A connection to the service that speaks gRPC over HTTP/2: as much of the protocol as the command line
 * needs. Loading a gRPC library, and its first call, would take longer than everything else that a command does.
 */
import { type ClientHttp2Session, connect, constants, type IncomingHttpHeaders } from "node:http2";
import { FORWARD_SECRET_CIPHERS } from "../../runtime/tls-ciphers.ts";
import { CallError, STATUS } from "./call-error.ts";
import { type Answer, type FrameLimits, frameOf, isGrpc, newFrameReader, statusError } from "./grpc-frames.ts";

export type ChannelCall = {
  /** `/gangway.v1.JobService/ListJobs` */
  readonly path: string;
  readonly message: Uint8Array;
  /** Omitted: the call may take any time. */
  readonly timeoutMs?: number;
  /** Each of them cancels the call. */
  readonly signals: readonly AbortSignal[];
  readonly onHeaders?: (headers: IncomingHttpHeaders) => void;
};

export type Channel = {
  /** Connects, unless it is connected. Throws a CallError if it cannot. */
  readonly ready: (timeoutMs: number) => Promise<void>;
  /** Calls the service, and yields the messages of its answer. Throws a CallError for every status but OK. */
  readonly call: (call: ChannelCall) => AsyncGenerator<Uint8Array>;
  readonly close: () => void;
};

/** Encrypts calls. In PEM; null: the authorities that Node trusts, and no certificate of the client. */
export type ClientTls = {
  readonly ca: string | null;
  readonly cert: string | null;
  readonly key: string | null;
  /** The name in the service's certificate. Null: the address has it. */
  readonly serverName: string | null;
};

/** What a connection and its calls show. */
export type ChannelSecurity = {
  /** Null: calls are not encrypted. */
  readonly tls: ClientTls | null;
  /** The bearer token of the next call. Null: calls show none. */
  readonly token: (() => Promise<string>) | null;
};

export const PLAIN: ChannelSecurity = { tls: null, token: null };

/** How often a call is sent again on a new connection: a service that is stopping refuses it on the old one, unread. */
const REFUSED_MAX = 2;

/** A channel to HOST:PORT. It connects at the first call, and again after a connection was lost. */
export function openChannel(address: string, limits: FrameLimits, { tls, token }: ChannelSecurity = PLAIN): Channel {
  let connection: Connection | null = null;
  /** Connections on which a call got no answer in time. They end with their last call. */
  const silent = new Set<Connection>();
  const ended = (used: Connection, isLate: boolean): void => {
    used.calls -= 1;
    if (isLate) silent.add(used);
    if (isLate && connection === used) connection = null;
    if (!silent.has(used) || used.calls > 0) return;
    silent.delete(used);
    // Not `close`, which waits for the other side: its process may hang.
    used.session.destroy();
  };
  const connected = (): Connection => {
    if (connection === null) {
      const mine = newConnection({ address, tls }, () => {
        if (connection === mine) connection = null;
      });
      connection = mine;
    }
    return connection;
  };
  async function* callOn(used: Connection, call: AuthorizedCall): AsyncGenerator<Uint8Array, "done" | "refused"> {
    used.calls += 1;
    let isLate = false;
    try {
      return yield* callOnce(used.ready, call, limits);
    } catch (error) {
      isLate = error instanceof CallError && error.code === STATUS.DEADLINE_EXCEEDED;
      throw error;
    } finally {
      ended(used, isLate);
    }
  }
  return {
    async ready(timeoutMs) {
      using ending = endOf(timeoutMs, []);
      await Promise.race([connected().ready, ending.ended]);
    },
    async *call(call) {
      for (let refused = 0; ; refused += 1) {
        const authorization = token === null ? null : `Bearer ${await token()}`;
        const outcome = yield* callOn(connected(), { ...call, authorization });
        if (outcome === "done") return;
        if (refused === REFUSED_MAX) throw new CallError(STATUS.UNAVAILABLE, "the service refuses calls");
        connection = null;
      }
    },
    close() {
      for (const { session } of silent) session.destroy();
      connection?.session.destroy();
      connection = null;
    },
  };
}

type AuthorizedCall = ChannelCall & { readonly authorization: string | null };

type Connection = {
  readonly session: ClientHttp2Session;
  readonly ready: Promise<ClientHttp2Session>;
  /** Calls that have not ended. */
  calls: number;
};

/** Connects. Calls `onOver` once no new call can use the connection. */
function newConnection(
  { address, tls }: { readonly address: string; readonly tls: ClientTls | null },
  onOver: () => void,
): Connection {
  const { promise: ready, resolve, reject } = Promise.withResolvers<ClientHttp2Session>();
  ready.catch(() => undefined);
  const session = newSession(address, tls);
  const fail = (reason: string, reasonCode: string) => {
    onOver();
    const details = `cannot connect to ${address}: ${reason}`;
    reject(new CallError(STATUS.UNAVAILABLE, details, { isSent: false, reasonCode }));
  };
  session.once("connect", () => resolve(session));
  session.on("goaway", onOver);
  // An error of an open connection also ends its streams, which report it.
  session.on("error", (error) => fail(reasonOf(error), codeOf(error)));
  session.on("close", () => fail("the connection was closed", ""));
  return { session, ready, calls: 0 };
}

function newSession(address: string, tls: ClientTls | null): ClientHttp2Session {
  const options = { maxSessionMemory: Number.MAX_SAFE_INTEGER };
  if (tls === null) return connect(`http://${address}`, options);
  const { ca, cert, key, serverName } = tls;
  return connect(`https://${address}`, {
    ...options,
    minVersion: "TLSv1.2",
    ciphers: FORWARD_SECRET_CIPHERS,
    ...(ca === null ? {} : { ca }),
    ...(cert === null || key === null ? {} : { cert, key }),
    ...(serverName === null ? {} : { servername: serverName }),
  });
}

/** Ends a session that does not answer for this long while a call of any length is open: its process may hang. */
const PING_MS = 10_000;

/**
 * Asks the session of a call without a time again and again whether it answers. Returns what stops that. The end of the
 * session stops it too: a caller may leave a stream without ending it.
 */
function watchSilence(session: ClientHttp2Session, timeoutMs: number | undefined): () => void {
  if (timeoutMs !== undefined) return () => {};
  let isAnswered = true;
  const timer = setInterval(() => {
    if (!isAnswered) return session.destroy(new Error(`no answer within ${PING_MS / 1000} s`));
    isAnswered = false;
    session.ping(() => {
      isAnswered = true;
    });
  }, PING_MS);
  const stop = () => clearInterval(timer);
  session.once("close", stop);
  return () => {
    session.off("close", stop);
    stop();
  };
}

/** Makes one try of a call. "refused": the service did not look at it. */
async function* callOnce(
  session: Promise<ClientHttp2Session>,
  { path, message, timeoutMs, signals, onHeaders, authorization }: AuthorizedCall,
  limits: FrameLimits,
): AsyncGenerator<Uint8Array, "done" | "refused"> {
  const body = frameOf(message, limits);
  using ending = endOf(timeoutMs, signals);
  const open = await Promise.race([session, ending.ended]);
  const stream = open.request({
    ":method": "POST",
    ":path": path,
    "content-type": "application/grpc",
    te: "trailers",
    ...(authorization === null ? {} : { authorization }),
    ...(timeoutMs === undefined ? {} : { "grpc-timeout": `${Math.ceil(timeoutMs)}m` }),
  });
  const stopWatching = watchSilence(open, timeoutMs);
  const answer: { -readonly [K in keyof Answer]: Answer[K] } = { headers: null, trailers: null };
  stream.on("response", (headers) => {
    answer.headers = headers;
    onHeaders?.(headers);
  });
  stream.on("trailers", (trailers) => {
    answer.trailers = trailers;
  });
  let cause: unknown = null;
  ending.ended.catch((error: CallError) => {
    cause = error;
    stream.close(constants.NGHTTP2_CANCEL);
  });
  try {
    stream.end(body);
    const reader = newFrameReader(limits);
    for await (const chunk of stream) if (isGrpc(answer)) yield* reader.take(chunk as Buffer);
    reader.end();
  } catch (error) {
    cause ??= error;
  } finally {
    stopWatching();
    // A stream that is cancelled may emit one more error, which would end the process.
    stream.on("error", () => {});
    stream.close(constants.NGHTTP2_CANCEL);
  }
  if (cause instanceof CallError) throw cause;
  if (stream.rstCode === constants.NGHTTP2_REFUSED_STREAM && answer.headers === null) return "refused";
  const failure = statusError(answer, cause === null ? null : reasonOf(cause));
  if (failure !== null) throw failure;
  return "done";
}

/** Rejects `ended` after the time, or when a signal is aborted. */
function endOf(timeoutMs: number | undefined, signals: readonly AbortSignal[]): Disposable & { ended: Promise<never> } {
  const { promise, reject } = Promise.withResolvers<never>();
  promise.catch(() => undefined);
  const cancel = () => reject(new CallError(STATUS.CANCELLED, "the call was cancelled"));
  const late = () => {
    reject(new CallError(STATUS.DEADLINE_EXCEEDED, `no answer within ${Math.round((timeoutMs ?? 0) / 1000)} s`));
  };
  const timer = timeoutMs === undefined ? undefined : setTimeout(late, timeoutMs);
  for (const signal of signals) signal.addEventListener("abort", cancel, { once: true });
  if (signals.some(({ aborted }) => aborted)) cancel();
  return {
    ended: promise,
    [Symbol.dispose]() {
      clearTimeout(timer);
      for (const signal of signals) signal.removeEventListener("abort", cancel);
    },
  };
}

/** Node's code of an error, or of the first of those that it collects. */
function codeOf(error: unknown): string {
  const code = (error as { readonly code?: unknown }).code;
  if (typeof code === "string") return code;
  return error instanceof AggregateError && error.errors.length > 0 ? codeOf(error.errors[0]) : "";
}

/** The words of an error, or of those that it collects: a name may lead to several addresses. */
function reasonOf(error: unknown): string {
  if (error instanceof AggregateError && error.message === "") return error.errors.map(reasonOf).join("; ");
  return error instanceof Error ? error.message : String(error);
}
