import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { type ConnectionOptions, RedisConnection } from "../../src/adapters/quota/redis/connection.ts";
import type { Script } from "../../src/adapters/quota/redis/scripts.ts";
import { UnavailableError } from "../../src/runtime/unavailable-error.ts";

/** Notes the call, and answers with the run of the server that carries it out. */
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

/** Callers who note their calls in one list for ever, until they are stopped, and what they saw. */
export class Callers {
  readonly #connection: RedisConnection;
  readonly #key: string;
  #isStopped = false;
  #count = 0;
  /** Runs of servers that have answered, in the order of their first answer. */
  readonly runs = new Set<string>();
  /** Calls that were answered, and those whose answer was lost. */
  answered = 0;
  lost = 0;
  readonly #running: Promise<unknown>;

  constructor(connection: RedisConnection, key: string, callers = 8) {
    this.#connection = connection;
    this.#key = key;
    this.#running = Promise.all(Array.from({ length: callers }, () => this.#call()));
  }

  /** Resolves once so many more calls were answered. */
  async answeredMore(count: number): Promise<void> {
    for (const enough = this.answered + count; this.answered < enough; ) {
      await Promise.race([this.#running, new Promise((resolve) => setTimeout(resolve, 5))]);
    }
  }

  /** Resolves once a server has answered that is none of those that had by then. */
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
        const [told, actual] = reply as readonly [string, string];
        assert.equal(told, actual, "a call is told the run of the very server that carries it out");
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

/** What was noted holds no call twice. */
export function noneTwice(noted: readonly string[]): void {
  assert.ok(noted.length > 0);
  assert.equal(new Set(noted).size, noted.length, "no call is carried out twice");
}
