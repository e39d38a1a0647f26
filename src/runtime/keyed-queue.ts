type Task = (key: string) => Promise<void>;

/**
 * Runs one task at a time for each key, and a bounded number of tasks for all keys. A key that is woken several times
 * while it waits runs once. A key that is woken while it runs, runs once more afterwards.
 */
export class KeyedQueue {
  readonly #task: Task;
  readonly #concurrency: number;
  readonly #onError: (error: unknown, key: string) => void;
  readonly #waiting = new Set<string>();
  /** The keys that run. True: the key was woken again. */
  readonly #running = new Map<string, boolean>();
  #idle: (() => void)[] = [];
  #closed = false;

  constructor(task: Task, options: { concurrency: number; onError: (error: unknown, key: string) => void }) {
    this.#task = task;
    this.#concurrency = options.concurrency;
    this.#onError = options.onError;
  }

  /** Runs the key soon; if it runs now, once more afterwards. */
  wake(key: string): void {
    if (this.#closed) return;
    if (this.#running.has(key)) this.#running.set(key, true);
    else this.#waiting.add(key);
    this.#fill();
  }

  /** Runs the key soon. Returns false, without effect, if it runs now. */
  offer(key: string): boolean {
    if (this.#closed || this.#running.has(key)) return false;
    this.wake(key);
    return true;
  }

  /** Resolves once nothing waits or runs. */
  async idle(): Promise<void> {
    while (this.#waiting.size + this.#running.size > 0) {
      await new Promise<void>((resolve) => this.#idle.push(resolve));
    }
  }

  /** Drops the waiting keys, ignores new ones, and resolves once the running tasks have ended. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#waiting.clear();
    await this.idle();
  }

  #fill(): void {
    for (const key of this.#waiting) {
      if (this.#running.size >= this.#concurrency) return;
      this.#waiting.delete(key);
      this.#running.set(key, false);
      void this.#run(key);
    }
  }

  async #run(key: string): Promise<void> {
    try {
      await this.#task(key);
    } catch (error) {
      this.#onError(error, key);
    }
    const again = this.#running.get(key) === true;
    this.#running.delete(key);
    if (again && !this.#closed) this.#waiting.add(key);
    this.#fill();
    if (this.#waiting.size + this.#running.size > 0) return;
    const idle = this.#idle;
    this.#idle = [];
    for (const resolve of idle) resolve();
  }
}
