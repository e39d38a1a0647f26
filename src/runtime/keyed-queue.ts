type Task = (key: string) => Promise<void>;

type KeyedQueueOptions = {
  /** How many tasks run at a time, without those that have left their place. */
  readonly concurrency: number;
  /** How many tasks may have left their place. Omitted: none. */
  readonly leftMax?: number;
  readonly onError: (error: unknown, key: string) => void;
};

/**
 * Runs one task at a time for each key, and a bounded number of tasks for all keys. A key that is woken several times
 * while it waits runs once. A key that is woken while it runs, runs once more afterwards.
 */
export class KeyedQueue {
  readonly #task: Task;
  readonly #concurrency: number;
  readonly #leftMax: number;
  readonly #onError: (error: unknown, key: string) => void;
  readonly #waiting = new Set<string>();
  /** The keys that run. True: the key was woken again. */
  readonly #running = new Map<string, boolean>();
  /** The keys whose tasks run, and take no place. */
  readonly #left = new Set<string>();
  #idle: (() => void)[] = [];
  #closed = false;

  constructor(task: Task, options: KeyedQueueOptions) {
    this.#task = task;
    this.#concurrency = options.concurrency;
    this.#leftMax = options.leftMax ?? 0;
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

  /**
   * The key's task, which runs, leaves its place to others: it waits for something that they do not need. Without
   * effect if as many as may have done so already.
   */
  leave(key: string): void {
    if (!this.#running.has(key) || this.#left.size >= this.#leftMax) return;
    this.#left.add(key);
    this.#fill();
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
      if (this.#running.size - this.#left.size >= this.#concurrency) return;
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
    this.#left.delete(key);
    if (again && !this.#closed) this.#waiting.add(key);
    this.#fill();
    if (this.#waiting.size + this.#running.size > 0) return;
    const idle = this.#idle;
    this.#idle = [];
    for (const resolve of idle) resolve();
  }
}
