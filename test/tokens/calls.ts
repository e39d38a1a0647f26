import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { type ConnectionOptions, RedisConnection } from "../../src/adapters/counters/redis/connection.ts";
import type { Script } from "../../src/adapters/counters/redis/scripts.ts";
import { UnavailableError } from "../../src/runtime/unavailable-error.ts";
import { waitUntil } from "../support/bounded.ts";

/** Records the call and returns the given run id and the run id of the server that runs it. */
export const NOTE = script(`
  redis.call('RPUSH', KEYS[1], ARGV[1])
  return {ARGV[2], redis.call('INFO', 'server'):match('run_id:(%w+)')}
`);

export function script(text: string): Script {
  return { text, sha: createHash("sha1").update(text).digest("hex") };
}

export function openConnection(given: Partial<ConnectionOptions> & { readonly url: string }): Promise<RedisConnection> {
  return RedisConnection.open({
    commandTimeoutMs: 500,
    reconnectMsMin: 5,
    reconnectMsMax: 200,
    onError: () => undefined,
    onWarning: (message) => assert.fail(message),
    ...given,
  });
}

/** Callers that record calls in one list until they are stopped, and the answers that they saw. */
export class Callers {
  readonly #connection: RedisConnection;
  readonly #key: string;
  #isStopped = false;
  #count = 0;
  /** The run ids of servers that answered, in the order of their first answer. */
  readonly runs = new Set<string>();
  /** The numbers of answered calls and of calls with a lost answer. */
  answered = 0;
  lost = 0;
  readonly #running: Promise<unknown>;

  constructor(connection: RedisConnection, key: string, callers = 8) {
    this.#connection = connection;
    this.#key = key;
    this.#running = Promise.all(Array.from({ length: callers }, () => this.#call()));
    // One that fails ends the others. Who waits for them hears of it.
    this.#running.catch(() => {
      this.#isStopped = true;
    });
  }

  /** Resolves after this many more answered calls. */
  async answeredMore(count: number): Promise<void> {
    const enough = this.answered + count;
    const isEnough = () => this.answered >= enough || this.#isStopped;
    await Promise.race([this.#running, waitUntil(`${count} more calls are answered`, isEnough, { pollMs: 5 })]);
  }

  /** Resolves when a server that is not in `than` has answered. */
  async answeredByAnother(than: ReadonlySet<string>): Promise<void> {
    while ([...this.runs].every((run) => than.has(run))) await this.answeredMore(1);
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    await this.#running;
  }

  async #call(): Promise<void> {
    while (!this.#isStopped) {
      this.#count += 1;
      const id = `${this.#count}`;
      try {
        const reply = await this.#connection.run(NOTE, [this.#key], (runId) => [id, runId]);
        const [given, actual] = reply as readonly [string, string];
        assert.equal(given, actual, "a call must get the run id of the server that runs it");
        this.runs.add(actual);
        this.answered += 1;
      } catch (error) {
        if (!(error instanceof UnavailableError)) throw error;
        this.lost += 1;
        await new Promise((resolve) => setTimeout(resolve, 5));
      }
    }
  }
}

/** Fails if a recorded call ran twice. */
export function noneTwice(noted: readonly string[]): void {
  assert.ok(noted.length > 0);
  assert.equal(new Set(noted).size, noted.length, "no call may run twice");
}
