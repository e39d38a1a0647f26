import { Redis } from "ioredis";
import { doublingMs } from "../../../runtime/doubling.ts";
import { getOrCreate } from "../../../runtime/get-or-create.ts";
import { baseOptions, type Endpoint, type Timing } from "./options.ts";

export type SubscriptionsOptions = Timing & {
  /** The name of the server in messages. */
  readonly name: string;
  /** Returns where to connect next. Each call may return another server. */
  readonly nextEndpoint: () => Endpoint;
  readonly onError: (error: Error) => void;
};

type Listener = (message: string) => void;

/** The interval between pings. They show that a connection that only listens is still alive. */
const PING_EVERY_MS = 10_000;

/**
 * Subscriptions to channels, on a separate connection. It is opened for the first subscription and reopened whenever it
 * is lost. Messages are missed meanwhile.
 */
export class Subscriptions {
  readonly #options: SubscriptionsOptions;
  readonly #listeners = new Map<string, Set<Listener>>();
  #redis: Redis | null = null;
  #retry: NodeJS.Timeout | null = null;
  #ping: NodeJS.Timeout | null = null;
  #failures = 0;
  #isClosed = false;

  constructor(options: SubscriptionsOptions) {
    this.#options = options;
  }

  /** Returns a function that ends the subscription. */
  subscribe(channel: string, listener: Listener): () => void {
    const listeners = getOrCreate(this.#listeners, channel, () => new Set());
    const isNew = listeners.size === 0;
    listeners.add(listener);
    if (this.#redis === null && this.#retry === null) this.#connect();
    else if (isNew) this.#listen([channel]);
    return () => {
      if (!listeners.delete(listener) || listeners.size > 0) return;
      this.#listeners.delete(channel);
      if (this.#redis?.status === "ready") this.#redis.unsubscribe(channel).catch(() => this.#redis?.disconnect());
    };
  }

  close(): void {
    this.#isClosed = true;
    if (this.#retry !== null) clearTimeout(this.#retry);
    if (this.#ping !== null) clearInterval(this.#ping);
    this.#redis?.disconnect();
  }

  #connect(): void {
    if (this.#isClosed) return;
    this.#retry = null;
    const redis = new Redis({
      ...baseOptions(this.#options),
      ...this.#options.nextEndpoint(),
      // Each attempt opens a new connection, since the next endpoint may differ.
      retryStrategy: null,
      sentinelRetryStrategy: () => null,
    });
    this.#redis = redis;
    redis.on("error", (error: Error) => this.#failed(error.message));
    redis.on("message", (channel: string, message: string) => {
      for (const listener of [...(this.#listeners.get(channel) ?? [])]) listener(message);
    });
    redis.once("end", () => this.#connectLater());
    redis.connect().then(
      () => {
        this.#listen([...this.#listeners.keys()]);
        this.#ping = setInterval(() => redis.ping().catch(() => redis.disconnect()), PING_EVERY_MS).unref();
      },
      // The event reports the error.
      () => undefined,
    );
  }

  #connectLater(): void {
    if (this.#ping !== null) clearInterval(this.#ping);
    this.#redis = null;
    if (this.#isClosed) return;
    const { reconnectMsMin, reconnectMsMax } = this.#options;
    const pauseMs = doublingMs({ firstMs: reconnectMsMin, longestMs: reconnectMsMax }, this.#failures);
    this.#failures += 1;
    this.#retry = setTimeout(() => this.#connect(), pauseMs).unref();
  }

  #listen(channels: readonly string[]): void {
    const redis = this.#redis;
    if (redis?.status !== "ready" || channels.length === 0) return;
    redis.subscribe(...channels).then(
      () => {
        this.#failures = 0;
      },
      (error: Error) => {
        this.#failed(error.message);
        redis.disconnect();
      },
    );
  }

  #failed(message: string): void {
    if (!this.#isClosed)
      this.#options.onError(new Error(`${this.#options.name} cannot be subscribed to now: ${message}`));
  }
}
