import type { RedisOptions } from "ioredis";
import { doublingMs } from "../../../runtime/doubling.ts";
import type { Host, Login, RedisAddress, TlsOptions } from "./address.ts";

/** How connections are made and how long is waited. */
export type Timing = {
  /** A call without an answer for so long is lost. */
  readonly commandTimeoutMs: number;
  /** The pause before the first attempt to connect again; it doubles up to `reconnectMsMax`. */
  readonly reconnectMsMin: number;
  readonly reconnectMsMax: number;
};

/** What is told beside the URL; where it names a user or password too, these here count. */
export type Secrets = Partial<Login> & {
  readonly sentinel?: Login;
  readonly tls?: TlsOptions;
};

/** How a server is reached; the protocol is not its choice. */
export type Endpoint = Omit<RedisOptions, "protocol" | "replyMapping">;

/** So many lost calls' time without a byte, and the connection counts as cut. */
const SILENT_CALLS = 3;

/** What every connection has in common: nothing is queued, nothing is sent again by the library. */
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
    // INFO is asked for where it is looked into; what else a client says of itself some servers forbid.
    enableReadyCheck: false,
    disableClientInfo: true,
    protocol: 2 as const,
    retryStrategy: pauseMs,
    sentinelRetryStrategy: pauseMs,
    sentinelCommandTimeout: commandTimeoutMs,
  } satisfies RedisOptions;
}

/** Where one server is: at `host`, or wherever the sentinels of the address say. */
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

/** Where one sentinel of the address is. */
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
