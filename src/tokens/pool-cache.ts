import type { PoolSettings } from "../core/quota/pools.ts";
import type { Clock } from "../runtime/clock.ts";
import { GroupCommit } from "../runtime/group-commit.ts";
import type { QuotaStore } from "./ports.ts";

/** How long a change by another process may stay unseen here. Only leases and queues are read here, never limits. */
const FRESH_MS = 1_000;
/** The default maximum of pools. */
const KEPT_MAX = 10_000;
const GROUP = { groupMax: 256, waitingMax: 8_192 };

type Kept<T> = { readonly value: T; readonly atMs: number };

/** Keeps the settings of pools and the names of queues for a moment, so that most requests read nothing. */
export class PoolCache {
  readonly #clock: Pick<Clock, "monotonicMs">;
  readonly #pools = new Map<string, Kept<PoolSettings>>();
  readonly #queues = new Map<string, Kept<true>>();
  readonly #poolReads: GroupCommit<string, PoolSettings | null>;
  readonly #store: Pick<QuotaStore, "find" | "queueExists">;

  constructor(clock: Pick<Clock, "monotonicMs">, store: Pick<QuotaStore, "find" | "queueExists">) {
    this.#clock = clock;
    this.#store = store;
    this.#poolReads = new GroupCommit({
      ...GROUP,
      what: "look-ups of pools",
      run: async (names) => {
        const found = new Map((await store.find([...new Set(names)])).map((pool) => [pool.name, pool]));
        return names.map((name) => found.get(name) ?? null);
      },
    });
  }

  /** Returns null if there is no such pool now. A pool that is not kept is always read. */
  async pool(name: string): Promise<PoolSettings | null> {
    const kept = this.#fresh(this.#pools, name);
    if (kept !== null) return kept;
    const found = await this.#poolReads.ask(name);
    if (found === null) this.#pools.delete(name);
    else this.#keep(this.#pools, name, found);
    return found;
  }

  async queueExists(name: string): Promise<boolean> {
    if (this.#fresh(this.#queues, name) !== null) return true;
    const exists = await this.#store.queueExists(name);
    if (exists) this.#keep(this.#queues, name, true);
    return exists;
  }

  /** Makes the next request for the pool read it. */
  forget(pool: string): void {
    this.#pools.delete(pool);
  }

  #fresh<T>(kept: ReadonlyMap<string, Kept<T>>, name: string): T | null {
    const found = kept.get(name);
    return found !== undefined && this.#clock.monotonicMs() - found.atMs < FRESH_MS ? found.value : null;
  }

  #keep<T>(kept: Map<string, Kept<T>>, name: string, value: T): void {
    if (kept.size >= KEPT_MAX) kept.clear();
    kept.set(name, { value, atMs: this.#clock.monotonicMs() });
  }
}
