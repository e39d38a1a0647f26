import { Redis } from "ioredis";
import { UnavailableError } from "../../../runtime/unavailable-error.ts";
import { baseOptions, type Endpoint, type Timing } from "./options.ts";
import type { Script } from "./scripts.ts";
import { parseInfo, refusalOf, type Server, uncheckedOf } from "./server.ts";

export type NodeOptions = Timing & {
  /** How it is called in messages. */
  readonly name: string;
  /** Where it is. */
  readonly endpoint: Endpoint;
  /** It is to be a node of a Redis Cluster. */
  readonly clustered: boolean;
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
const AWAY = new Set([
  ...["ASK", "BUSY", "CLUSTERDOWN", "LOADING", "MASTERDOWN", "MISCONF", "MOVED"],
  ...["NOAUTH", "NOPERM", "NOREPLICAS", "OOM", "READONLY", "TRYAGAIN"],
]);

/**
 * One connection to one server, made again whenever it is lost. Nothing is queued while there is none and nothing is ever sent twice: a
 * call whose answer is lost throws `UnavailableError`, and only its caller knows what to do.
 */
export class RedisNode {
  readonly #redis: Redis;
  readonly #options: NodeOptions;
  /** The run of the server that is connected and may be used. */
  #runId: string | null = null;
  #refusal: string | null = null;
  #identifying: Promise<void> | null = null;
  /** Counts connections: an answer of an earlier one says nothing of this one. */
  #connection = 0;
  #lastError = "not connected yet";
  #closed = false;
  #hasConnected = false;

  constructor(options: NodeOptions) {
    this.#options = options;
    const base = baseOptions(options);
    this.#redis = new Redis({
      ...base,
      ...options.endpoint,
      // At first it is said at once that no sentinel answers; later there is nobody to hear it.
      sentinelRetryStrategy: (times) => (this.#hasConnected ? base.retryStrategy(times) : null),
      enableAutoPipelining: true,
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

  /**
   * Resolves once it can be used. Throws `RedisRefusedError` for a server that must not be, `UnavailableError` for one that cannot be
   * reached; both are tried again until it is closed.
   */
  async connect(): Promise<void> {
    await this.#redis.connect().catch((error: Error) => {
      throw this.#unavailable(this.#lastErrorOr(error));
    });
    this.#hasConnected = true;
    await this.#identify();
    if (this.#refusal !== null) throw new RedisRefusedError(this.#refusal);
    if (this.#runId === null && !this.#options.clustered) throw this.#unavailable(this.#lastError);
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

  /** Which slots of the cluster are where, as CLUSTER SLOTS answers. */
  async slots(): Promise<unknown> {
    if (this.#redis.status !== "ready") throw this.#unavailable(this.#lastError);
    try {
      return await this.#redis.call("CLUSTER", "SLOTS");
    } catch (error) {
      throw this.#translated(error);
    }
  }

  /** Connects again, to whoever is at its place by now. What waits for an answer loses it. */
  reconnect(): void {
    if (this.#redis.status === "ready") this.#redis.disconnect(true);
  }

  /** What waits for an answer loses it. */
  async close(): Promise<void> {
    this.#closed = true;
    if (this.#redis.status === "end" || this.#redis.status === "wait") return this.#redis.disconnect();
    const ended = new Promise<void>((resolve) => this.#redis.once("end", () => resolve()));
    this.#redis.disconnect();
    // Between two attempts, and while sentinels are asked, there is no connection whose end could be heard soon.
    if (this.#redis.status === "reconnecting" || this.#redis.status === "connecting") return;
    await ended;
  }

  async #evaluate(script: Script, keys: readonly string[], parameters: readonly string[]): Promise<unknown> {
    const connection = this.#connection;
    try {
      return await this.#redis.evalsha(script.sha, keys.length, ...keys, ...parameters);
    } catch (error) {
      if (!(error instanceof Error && error.message.startsWith("NOSCRIPT"))) throw error;
      // It was not carried out: the server did not know it.
      await this.#redis.script("LOAD", script.text);
      // The parameters name the run that they were made for.
      if (connection !== this.#connection) throw this.#unavailable("the connection was lost");
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
      server = parseInfo(await this.#redis.info());
    } catch (error) {
      this.#failedToAsk(error instanceof Error ? error.message : String(error));
      // Lost with its connection: the next one may be there already, and nobody else asks.
      if (connection !== this.#connection && this.#redis.status === "ready") await this.#askServer();
      return;
    }
    if (connection === this.#connection) this.#judge(server);
  }

  #judge(server: Server): void {
    const { name, clustered, onError, onWarning } = this.#options;
    const refusal = refusalOf(server, { clustered });
    this.#refusal = refusal && `${name} is refused: ${refusal}`;
    if (this.#refusal !== null) {
      onError(new RedisRefusedError(this.#refusal));
    } else if (server.isReplica) {
      this.#passOver();
    } else {
      for (const unchecked of uncheckedOf(server)) onWarning(`${name}: ${unchecked}`);
      this.#runId = server.runId;
    }
  }

  /** In a cluster it may become the primary where it is; elsewhere the way to the primary leads past it. */
  #passOver(): void {
    this.#lastError = "it is a replica";
    if (this.#options.clustered) return;
    this.#failed(this.#lastError);
    this.reconnect();
  }

  #failedToAsk(message: string): void {
    if (/^(NOPERM|ERR unknown command)/.test(message)) {
      this.#refusal = `${this.#options.name} is refused: its user may not ask INFO, which tells one run of it from another; allow +info`;
      this.#options.onError(new RedisRefusedError(this.#refusal));
    } else {
      this.#failed(message);
    }
  }

  #failed(message: string): void {
    this.#lastError = message;
    if (!this.#closed) this.#options.onError(this.#unavailable(message));
  }

  #lastErrorOr(error: Error): string {
    return this.#lastError === "not connected yet" ? error.message : this.#lastError;
  }

  #unavailable(why: string): UnavailableError {
    return new UnavailableError(`${this.#options.name} cannot be used now: ${why}`);
  }

  /** What a server answered is the caller's to see, unless it only says that it is away; all else is a lost answer. */
  #translated(error: unknown): Error {
    if (error instanceof UnavailableError) return error;
    const message = error instanceof Error ? error.message : String(error);
    const answered = error instanceof Error && error.name === "ReplyError";
    if (answered && !AWAY.has(message.split(" ")[0] ?? "")) return new Error(`Redis answered: ${message}`);
    return this.#unavailable(message);
  }
}
