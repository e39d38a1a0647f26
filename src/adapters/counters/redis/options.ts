import type { RedisOptions } from "ioredis";
import { doublingMs } from "../../../runtime/doubling.ts";
import type { Host, Login, RedisAddress, TlsOptions } from "./address.ts";

/** The timing of connections and calls. */
export type Timing = {
  /** A call is lost if it has no answer after this time. */
  readonly commandTimeoutMs: number;
  /** The pause before the first attempt to connect again; it doubles up to `reconnectMsMax`. */
  readonly reconnectMsMin: number;
  readonly reconnectMsMax: number;
};

/** Secrets that are configured beside the URL. A user or password here takes precedence over the URL's. */
export type Secrets = Partial<Login> & {
  readonly sentinel?: Login;
  readonly tls?: TlsOptions;
};

/** The options that lead to one server. The protocol is fixed by `baseOptions`. */
export type Endpoint = Omit<RedisOptions, "protocol" | "replyMapping">;

/** A connection without any byte for this many command timeouts counts as cut. */
const SILENT_CALLS = 3;

/** The options of every connection. The library must not queue or resend calls. */
export function baseOptions(timing: Timing) {
  const { commandTimeoutMs, reconnectMsMin, reconnectMsMax } = timing;
  const pause = { firstMs: reconnectMsMin, longestMs: reconnectMsMax };
  const pauseMs = (times: number) => doublingMs(pause, times - 1);
  return {
    lazyConnect: true,
    enableOfflineQueue: false,
    autoResendUnfulfilledCommands: false,
    maxRetriesPerRequest: 0,
    autoResubscribe: false,
    commandTimeout: commandTimeoutMs,
    connectTimeout: commandTimeoutMs,
    socketTimeout: commandTimeoutMs * SILENT_CALLS,
    // `RedisNode` runs INFO itself. Some servers forbid the client information that the library would send.
    enableReadyCheck: false,
    disableClientInfo: true,
    protocol: 2 as const,
    retryStrategy: pauseMs,
    sentinelRetryStrategy: pauseMs,
    sentinelCommandTimeout: commandTimeoutMs,
  } satisfies RedisOptions;
}

/** Returns the options to reach one server: at `host`, or the primary that the sentinels report. */
export function endpointOptions(address: RedisAddress, secrets: Secrets, host: Host = address.hosts[0]): Endpoint {
  const tls = address.tls ? { tls: tlsOptions(secrets.tls) } : {};
  const login = presentOf({
    username: secrets.username ?? address.username,
    password: secrets.password ?? address.password,
  });
  if (address.kind === "cluster") return { ...host, ...login, ...tls };
  if (address.kind === "standalone") return { ...host, ...login, ...tls, db: address.db };
  return {
    ...login,
    ...tls,
    db: address.db,
    sentinels: [...address.hosts],
    name: address.name,
    ...presentOf({
      sentinelUsername: secrets.sentinel?.username ?? null,
      sentinelPassword: secrets.sentinel?.password ?? null,
    }),
    ...(address.tls ? { enableTLSForSentinelMode: true, sentinelTLS: tlsOptions(secrets.tls) } : {}),
  };
}

/** Returns the options to reach one sentinel of the address. */
export function sentinelOptions(address: RedisAddress, secrets: Secrets, host: Host): Endpoint {
  const { username = null, password = null } = secrets.sentinel ?? {};
  return { ...host, ...presentOf({ username, password }), ...(address.tls ? { tls: tlsOptions(secrets.tls) } : {}) };
}

function tlsOptions(given: TlsOptions | undefined) {
  const { ca = null, cert = null, key = null, serverName: servername = null } = given ?? {};
  return presentOf({ ca, cert, key, servername });
}

function presentOf<K extends string>(values: Readonly<Record<K, string | null>>): { [key in K]?: string } {
  const present: { [key in K]?: string } = {};
  for (const key in values) {
    const value = values[key];
    if (value !== null) present[key] = value;
  }
  return present;
}
