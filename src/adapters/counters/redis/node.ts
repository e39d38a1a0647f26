/** Serves operators of Redis: one connection that reconnects by itself and refuses servers that could lose tokens. */
import { Redis } from "ioredis";
import type { RedisState } from "../../../core/quota/redis-state.ts";
import { UnavailableError } from "../../../runtime/unavailable-error.ts";
import { baseOptions, type Endpoint, type Timing } from "./options.ts";
import type { Script } from "./scripts.ts";
import { parseInfo, refusalOf, type Server, uncheckedOf } from "./server.ts";

export type NodeOptions = Timing & {
  /** The name of the server in messages. */
  readonly name: string;
  /** The address of the server. */
  readonly endpoint: Endpoint;
  /** True: the server must be a node of a Redis Cluster. */
  readonly clustered: boolean;
  /** Gets the reason when there is no connection. The next attempt follows automatically. */
  readonly onError: (error: Error) => void;
  /** Gets a warning about each property of a server that could not be checked. */
  readonly onWarning: (message: string) => void;
};

/** Redis is not usable as it is configured. The message says what to change. */
export class RedisRefusedError extends Error {
  override readonly name = "RedisRefusedError";
}

/** Redis cannot be used for now, and in which way. */
export class RedisUnavailableError extends UnavailableError {
  override readonly name = "RedisUnavailableError";
  readonly state: Exclude<RedisState, "ok">;

  constructor(message: string, state: Exclude<RedisState, "ok">) {
    super(message);
    this.state = state;
  }
}

/** Why a connection of this node leads to no server that takes writes. */
const IS_REPLICA = "it is a replica";
const TAKES_NO_WRITES = ["READONLY", "MISCONF", "NOREPLICAS"];

/** Errors of a server that is temporarily unusable. It has not run the command. */
const AWAY = new Set([
  ...["ASK", "BUSY", "CLUSTERDOWN", "LOADING", "MASTERDOWN", "MISCONF", "MOVED"],
  ...["NOAUTH", "NOPERM", "NOREPLICAS", "OOM", "READONLY", "TRYAGAIN"],
]);

/**
 * One connection to one server, which reconnects whenever it is lost. No call is queued or sent twice. A call whose
 * answer is lost throws `UnavailableError`; its caller decides what to do.
 */
export class RedisNode {
  readonly #redis: Redis;
  readonly #options: NodeOptions;
  /** The run id of the connected server. Null: no usable server is connected. */
  #runId: string | null = null;
  #refusal: string | null = null;
  #identifying: Promise<void> | null = null;
  /** Counts connections. An answer on an earlier connection says nothing about the present server. */
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
      // The first connection fails at once if no sentinel answers. Later connections retry, because no caller waits for
      // them.
      sentinelRetryStrategy: (times) => (this.#hasConnected ? base.retryStrategy(times) : null),
      enableAutoPipelining: true,
      // After a primary becomes a replica, its address may lead to the new primary. `true` reconnects and resends
      // nothing.
      reconnectOnError: (error) => error.message.startsWith("READONLY"),
    });
    // Passes on only the message: the library's errors contain the command, and for a login the password.
    this.#redis.on("error", (error: Error) => this.#failed(error.message));
    this.#redis.on("close", () => {
      this.#connection += 1;
      this.#runId = null;
    });
    this.#redis.on("ready", () => void this.#identify());
  }

  /**
   * Resolves when the server is usable. Throws `RedisRefusedError` for a server that is not usable as it is configured,
   * `UnavailableError` for one that cannot be reached. In both cases the node retries until it is closed.
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

  /** Runs a script. `argumentsFor` gets the run id of the server that runs it. */
  async run(script: Script, keys: readonly string[], argumentsFor: (runId: string) => readonly string[]) {
    const runId = this.#runId;
    if (runId === null) {
      // The server was refused or not identified. Asks it again, since its answer may have changed.
      if (this.#redis.status === "ready") void this.#identify();
      throw this.#unavailable(this.#refusal ?? this.#lastError);
    }
    try {
      return await this.#evaluate(script, keys, argumentsFor(runId));
    } catch (error) {
      throw this.#translated(error);
    }
  }

  /** Returns the answer to CLUSTER SLOTS. */
  async slots(): Promise<unknown> {
    if (this.#redis.status !== "ready") throw this.#unavailable(this.#lastError);
    try {
      return await this.#redis.call("CLUSTER", "SLOTS");
    } catch (error) {
      throw this.#translated(error);
    }
  }

  /** Connects again, possibly to another server at the same address. Calls in progress lose their answers. */
  reconnect(): void {
    if (this.#redis.status === "ready") this.#redis.disconnect(true);
  }

  /** Closes the connection. Calls in progress lose their answers. */
  async close(): Promise<void> {
    this.#closed = true;
    if (this.#redis.status === "end" || this.#redis.status === "wait") return this.#redis.disconnect();
    const ended = new Promise<void>((resolve) => this.#redis.once("end", () => resolve()));
    this.#redis.disconnect();
    // Between two attempts, and while the sentinels are asked, there is no connection that would report its end.
    if (this.#redis.status === "reconnecting" || this.#redis.status === "connecting") return;
    await ended;
  }

  async #evaluate(script: Script, keys: readonly string[], parameters: readonly string[]): Promise<unknown> {
    const connection = this.#connection;
    // One list, since a hundred thousand parameters that are arguments of their own would overflow the stack.
    const rest = [keys.length, ...keys, ...parameters];
    try {
      return await this.#redis.call("EVALSHA", [script.sha, ...rest]);
    } catch (error) {
      if (!(error instanceof Error && error.message.startsWith("NOSCRIPT"))) throw error;
      // The parameters contain the run id of the earlier connection.
      if (connection !== this.#connection) throw this.#unavailable("the connection was lost");
      // The server did not know the script, so it did not run it. The text goes with the call, since the server could
      // forget a script that is only loaded before.
      return await this.#redis.call("EVAL", [script.text, ...rest]);
    }
  }

  /** Identifies the connected server. No call is sent before that. */
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
      // The answer was lost with its connection. If a new connection is ready already, nothing else would identify it.
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

  /**
   * Skips a replica. In a cluster it may become the primary later, so the node stays. Otherwise a new connection leads
   * to the primary.
   */
  #passOver(): void {
    this.#lastError = IS_REPLICA;
    if (this.#options.clustered) return;
    this.#failed(this.#lastError);
    this.reconnect();
  }

  #failedToAsk(message: string): void {
    if (/^(NOPERM|ERR unknown command)/.test(message)) {
      this.#refusal =
        `${this.#options.name} is refused: its user may not run INFO, ` +
        "which shows restarts of the server; allow +info for the user";
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
    return new RedisUnavailableError(`${this.#options.name} cannot be used now: ${why}`, stateOf(why));
  }

  /**
   * Returns the error for the caller: the server's own answer, or `UnavailableError` if the server is unusable for now
   * or the answer was lost.
   */
  #translated(error: unknown): Error {
    if (error instanceof UnavailableError) return error;
    const message = error instanceof Error ? error.message : String(error);
    const answered = error instanceof Error && error.name === "ReplyError";
    if (answered && !AWAY.has(codeOf(message))) return new Error(`Redis answered: ${message}`);
    return this.#unavailable(message);
  }
}

/** The code of an answer. Redis 6 puts the code of a script's command behind the name and line of the script. */
function codeOf(message: string): string {
  const [first = ""] = message.split(" ", 1);
  return first === "ERR" ? (/@user_script: ?\d{1,9}: -?([A-Z]+) /.exec(message.slice(0, 1_000))?.[1] ?? first) : first;
}

function stateOf(why: string): Exclude<RedisState, "ok"> {
  const code = codeOf(why);
  if (code === "OOM") return "out_of_memory";
  return why === IS_REPLICA || TAKES_NO_WRITES.includes(code) ? "read_only" : "away";
}
