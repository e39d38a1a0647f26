import { randomUUID } from "node:crypto";
import { type RedisCounters, redisCounters } from "../../src/adapters/counters/redis/redis-counters.ts";
import type { Counters } from "../../src/core/quota/counters.ts";
import { RedisServer } from "../support/redis-server.ts";

/** A Redis server for one test file, with counters for its managers. */
export class OwnRedis {
  readonly #server: RedisServer;
  readonly #open: RedisCounters[] = [];

  private constructor(server: RedisServer) {
    this.#server = server;
  }

  static async start(): Promise<OwnRedis> {
    return new OwnRedis(await RedisServer.start());
  }

  /** Returns a function that connects managers to the counters of a new installation, each over its own connection. */
  connect(): (domain: string) => Promise<Counters> {
    const installation = randomUUID();
    return async (domain) => {
      const quiet = { onError: () => undefined, onWarning: () => undefined };
      const counters = await redisCounters({ url: this.#server.url, installation, domain, ...quiet });
      this.#open.push(counters);
      return counters;
    };
  }

  async disconnect(): Promise<void> {
    await Promise.all(this.#open.splice(0).map((counters) => counters.close()));
  }

  stop(): Promise<unknown> {
    return this.#server.stop();
  }
}
