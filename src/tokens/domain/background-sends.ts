import type { Clock } from "../../runtime/clock.ts";

/** Items of one call. */
const GROUP_MAX = 500;
/** Items that wait at most. The reaper later finds the dropped ones in the ledger. */
const WAITING_MAX = 20_000;

export type BackgroundSendsOptions<Item> = {
  readonly clock: Pick<Clock, "sleep">;
  /** How long items wait for others. 0: only for those of the same turn of the event loop. */
  readonly lingerMs: number;
  /** Sends some items. Its failures are its own. */
  readonly send: (items: readonly Item[]) => Promise<void>;
};

/**
 * Items that no answer waits for, on their way in the background. They may wait a moment, so that many go together, and
 * so that one that is not needed any more need not go at all.
 */
export class BackgroundSends<Item> {
  readonly #options: BackgroundSendsOptions<Item>;
  readonly #waiting = new Map<string, Item>();
  #running: Promise<void> | null = null;
  #closing = false;
  #hurry = () => {};

  constructor(options: BackgroundSendsOptions<Item>) {
    this.#options = options;
  }

  add(key: string, item: Item): void {
    if (this.#waiting.size >= WAITING_MAX) return;
    this.#waiting.set(key, item);
    if (this.#waiting.size >= GROUP_MAX) this.#hurry();
    this.#running ??= this.#run();
  }

  /** Does not send what waits under this key. */
  drop(key: string): void {
    this.#waiting.delete(key);
  }

  clear(): void {
    this.#waiting.clear();
  }

  /** Sends everything at once. Resolves when nothing is on its way any more. */
  async close(): Promise<void> {
    this.#closing = true;
    this.#hurry();
    await this.#running;
  }

  async #run(): Promise<void> {
    // Items of one turn of the event loop go together, also at the end.
    await Promise.resolve();
    while (this.#waiting.size > 0) {
      const lingers = this.#options.lingerMs > 0 && this.#waiting.size < GROUP_MAX && !this.#closing;
      if (lingers) await this.#linger();
      const group = [...this.#waiting].slice(0, GROUP_MAX);
      for (const [key] of group) this.#waiting.delete(key);
      if (group.length > 0) await this.#options.send(group.map(([, item]) => item));
    }
    this.#running = null;
  }

  async #linger(): Promise<void> {
    const stop = new AbortController();
    this.#hurry = () => stop.abort("goes on");
    await this.#options.clock.sleep(this.#options.lingerMs, stop.signal);
    this.#hurry = () => {};
  }
}
