import { setImmediate } from "node:timers/promises";
import { Semaphore } from "./semaphore.ts";
import { waitingKey } from "./served-call.ts";

type WaitingCall = { readonly result: Promise<unknown>; readonly callers: AbortSignal[] };

/**
 * Runs calls, at most `limit` at a time; others wait, and their callers take turns as `Turns` says. Calls with one key
 * that wait at the same time share one run, which begins after all of them came.
 */
export class SharedCalls {
  readonly #slots: Semaphore;
  readonly #waiting = new Map<string, WaitingCall>();

  constructor(limit: number) {
    this.#slots = new Semaphore(limit, waitingKey);
  }

  /** Returns the result of the shared run, or throws its error. Null: every caller had left before it began. */
  run<T>(key: string, task: () => Promise<T>, signal: AbortSignal): Promise<T | null> {
    const waiting = this.#waiting.get(key);
    waiting?.callers.push(signal);
    if (waiting !== undefined) return waiting.result as Promise<T | null>;
    const callers = [signal];
    const result = this.#slots.run(async () => {
      // Calls of the same moment join. An embedded database answers without I/O: others get their turn between runs.
      await setImmediate();
      this.#waiting.delete(key);
      return callers.every(({ aborted }) => aborted) ? null : task();
    });
    this.#waiting.set(key, { result, callers });
    return result;
  }
}
