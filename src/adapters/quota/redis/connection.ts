import { randomUUID } from "node:crypto";
import { Redis } from "ioredis";
import { UnavailableError } from "../../../runtime/unavailable-error.ts";
import type { Script } from "./scripts.ts";
import { parseInfo, refusalOf, type Server, uncheckedOf } from "./server.ts";

export type ConnectionOptions = {
  /** `redis://` or `rediss://`, with user and password where needed. */
  readonly url: string;
  /** A call without an answer for so long is lost. */
  readonly commandTimeoutMs: number;
  /** The pause before the first attempt to connect again; it doubles up to `reconnectMsMax`. */
  readonly reconnectMsMin: number;
  readonly reconnectMsMax: number;
  /** Hears why there is no connection; the next attempt comes by itself. */
  readonly onError: (error: Error) => void;
  /** Hears of each connection what could not be checked. */
  readonly onWarning: (message: string) => void;
};

/** This Redis must not be used as it is set up; the message says what to set. */
export class RedisRefusedError extends Error {
  override readonly name = "RedisRefusedError";
}

/** Errors of a server that is not of use now and may be later; the command was not carried out. */
const AWAY = new Set(["BUSY", "CLUSTERDOWN", "LOADING", "MASTERDOWN", "MISCONF", "NOREPLICAS", "OOM", "READONLY"]);

/** So many lost calls' time without a byte, and the connection counts as cut. */
const SILENT_CALLS = 3;

/**
 * One connection that is made again whenever it is lost. Nothing is queued while there is none and nothing is ever sent twice: a call whose
 * answer is lost throws `UnavailableError`, and only its caller knows what to do.
 */
export class RedisConnection {
  readonly #redis: Redis;
  readonly #options: ConnectionOptions;
  readonly #address: string;
  /** The run of the server that is connected and may be used. */
  #runId: string | null = null;
  #refusal: string | null = null;
  #identifying: Promise<void> | null = null;
  /** Counts connections: an answer of an earlier one says nothing of this one. */
  #connection = 0;
  #lastError = "not connected yet";

  private constructor(options: ConnectionOptions) {
    this.#options = options;
    this.#address = addressOf(options.url);
    this.#redis = new Redis(options.url, {
      lazyConnect: true,
      enableOfflineQueue: false,
      autoResendUnfulfilledCommands: false,
      maxRetriesPerRequest: 0,
      autoResubscribe: false,
      enableAutoPipelining: true,
      commandTimeout: options.commandTimeoutMs,
      connectTimeout: options.commandTimeoutMs,
      socketTimeout: options.commandTimeoutMs * SILENT_CALLS,
      // INFO is asked for here, where it is looked into; what else a client says of itself some servers forbid.
      enableReadyCheck: false,
      disableClientInfo: true,
      protocol: 2,
      retryStrategy: (times) => Math.min(options.reconnectMsMin * 2 ** Math.min(times - 1, 20), options.reconnectMsMax),
      // A primary that became a replica: its address may lead to the new primary by now. `true` connects again and resends nothing.
      reconnectOnError: (error) => error.message.startsWith("READONLY"),
    });
    // Its own message only: the library's errors carry the command, and that of a login the password.
    this.#redis.on("error", (error: Error) => this.#failed(error.message));
    this.#redis.on("close", () => {
      this.#connection += 1;
      this.#runId = null;
    });
    this.#redis.on("ready", () => void this.#identify());
  }

  /** Throws `RedisRefusedError` for a Redis that must not be used, `UnavailableError` for one that cannot be reached. */
  static async open(options: ConnectionOptions): Promise<RedisConnection> {
    const connection = new RedisConnection(options);
    try {
      await connection.#redis.connect().catch((error: Error) => {
        throw connection.#unavailable(connection.#lastErrorOr(error));
      });
      await connection.#identify();
      if (connection.#refusal !== null) throw new RedisRefusedError(connection.#refusal);
      if (connection.#runId === null) throw connection.#unavailable(connection.#lastError);
      return connection;
    } catch (error) {
      await connection.close();
      throw error;
    }
  }

  /** Runs a script; its arguments are told which run of the server they are sent to. */
  async run(script: Script, keys: readonly string[], argumentsFor: (runId: string) => readonly string[]) {
    const runId = this.#runId;
    if (runId === null) {
      // Refused, or not identified: the answer may be another one by now.
      if (this.#redis.status === "ready") void this.#identify();
      throw this.#unavailable(this.#refusal ?? this.#lastError);
    }
    try {
      return await this.#evaluate(script, keys, argumentsFor(runId));
    } catch (error) {
      throw this.#translated(error);
    }
  }

  /** What waits for an answer loses it. */
  async close(): Promise<void> {
    if (this.#redis.status === "end") return;
    const ended = new Promise<void>((resolve) => this.#redis.once("end", () => resolve()));
    this.#redis.disconnect();
    // Between two attempts there is no connection whose end could be heard.
    if (this.#redis.status === "reconnecting") return;
    await ended;
  }

  async #evaluate(script: Script, keys: readonly string[], parameters: readonly string[]): Promise<unknown> {
    try {
      return await this.#redis.evalsha(script.sha, keys.length, ...keys, ...parameters);
    } catch (error) {
      if (!(error instanceof Error && error.message.startsWith("NOSCRIPT"))) throw error;
      // It was not carried out: the server did not know it.
      await this.#redis.script("LOAD", script.text);
      return await this.#redis.evalsha(script.sha, keys.length, ...keys, ...parameters);
    }
  }

  /** Learns what is connected; until it is known nothing is sent there. */
  #identify(): Promise<void> {
    this.#identifying ??= this.#askServer().finally(() => {
      this.#identifying = null;
    });
    return this.#identifying;
  }

  async #askServer(): Promise<void> {
    if (this.#runId !== null) return;
    const connection = this.#connection;
    let server: Server;
    try {
      server = parseInfo(await this.#info());
    } catch (error) {
      this.#failed(error instanceof Error ? error.message : String(error));
      // Lost with its connection: the next one may be there already, and nobody else asks.
      if (connection !== this.#connection && this.#redis.status === "ready") await this.#askServer();
      return;
    }
    if (connection !== this.#connection) return;
    const refusal = refusalOf(server);
    this.#refusal = refusal && `Redis at ${this.#address} is refused: ${refusal}`;
    if (this.#refusal !== null) {
      this.#options.onError(new RedisRefusedError(this.#refusal));
      return;
    }
    for (const unchecked of uncheckedOf(server)) this.#options.onWarning(`Redis at ${this.#address}: ${unchecked}`);
    // Where it is not told, each connection counts as one to another server.
    this.#runId = server.runId ?? `connection ${randomUUID()}`;
  }

  /** Empty where this user may not ask. */
  async #info(): Promise<string> {
    try {
      return await this.#redis.info();
    } catch (error) {
      if (error instanceof Error && /^(NOPERM|ERR unknown command)/.test(error.message)) return "";
      throw error;
    }
  }

  #failed(message: string): void {
    this.#lastError = message;
    this.#options.onError(this.#unavailable(message));
  }

  #lastErrorOr(error: Error): string {
    return this.#lastError === "not connected yet" ? error.message : this.#lastError;
  }

  #unavailable(why: string): UnavailableError {
    return new UnavailableError(`Redis at ${this.#address} cannot be used now: ${why}`);
  }

  /** What a server answered is the caller's to see, unless it only says that it is away; all else is a lost answer. */
  #translated(error: unknown): Error {
    const message = error instanceof Error ? error.message : String(error);
    const answered = error instanceof Error && error.name === "ReplyError";
    if (answered && !AWAY.has(message.split(" ")[0] ?? "")) return new Error(`Redis answered: ${message}`);
    return this.#unavailable(message);
  }
}

/** Host and port alone: the rest may hold a password. */
function addressOf(url: string): string {
  const parsed = URL.canParse(url) ? new URL(url) : null;
  if (parsed === null || !["redis:", "rediss:"].includes(parsed.protocol) || parsed.hostname === "") {
    throw new RedisRefusedError(
      "the URL of Redis must look like redis://HOST:PORT or rediss://USER:PASSWORD@HOST:PORT",
    );
  }
  return `${parsed.hostname}:${parsed.port || "6379"}`;
}
