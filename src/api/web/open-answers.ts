/** The answers that are under way, and those whose clients do not read them. */
import type { Clock } from "../../runtime/clock.ts";
import type { WebResponse } from "./answers.ts";

/** A client that takes nothing of an answer for this long would otherwise keep its memory for ever. */
const STALL_MS_MAX = 60_000;
const LOOK_MS = 5_000;
/** Answers are written in parts of this size: a client that reads slowly, but reads, is seen to do so. */
const PART_BYTES = 64 * 1024;

export class OpenAnswers {
  readonly #clock: Pick<Clock, "monotonicMs" | "sleep">;
  /** By answer: since when its client has taken nothing. Null: it waits for nothing of its client. */
  readonly #open = new Map<WebResponse, number | null>();
  readonly #listeners = new Set<() => void>();

  constructor(clock: Pick<Clock, "monotonicMs" | "sleep">) {
    this.#clock = clock;
  }

  add(response: WebResponse): void {
    this.#open.set(response, null);
    response.once("finish", () => this.#end(response));
    response.once("close", () => this.#end(response));
  }

  get count(): number {
    return this.#open.size;
  }

  /** Passes an answer on, and notes since when its client has taken nothing. */
  async *deliver(response: WebResponse, body: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
    const wait = (sinceMs: number | null) => {
      if (this.#open.has(response)) this.#open.set(response, sinceMs);
    };
    for await (const bytes of body) {
      for (let at = 0; at < bytes.length; at += PART_BYTES) {
        wait(this.#clock.monotonicMs());
        yield bytes.subarray(at, at + PART_BYTES);
        wait(null);
      }
    }
    wait(this.#clock.monotonicMs());
  }

  /** Ends answers that nobody reads, until the signal is aborted. */
  async watch(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await this.#clock.sleep(LOOK_MS, signal);
      const latestMs = this.#clock.monotonicMs() - STALL_MS_MAX;
      for (const [response, waitsSinceMs] of this.#open) {
        if (waitsSinceMs !== null && waitsSinceMs < latestMs) destroyConnection(response);
      }
    }
  }

  /** Resolves once no answer is under way. */
  ended(): Promise<void> {
    if (this.#open.size === 0) return Promise.resolve();
    return new Promise((resolve) => {
      this.#listeners.add(resolve);
    });
  }

  #end(response: WebResponse): void {
    this.#open.delete(response);
    if (this.#open.size === 0) for (const listener of this.#listeners) listener();
  }
}

/** In HTTP/2 only the stream ends: others of its connection may be read. */
function destroyConnection(response: WebResponse): void {
  if ("stream" in response) response.stream.destroy();
  else response.destroy();
}
