import { SlowDown } from "../runtime/slow-down.ts";

/** The plugins of a worker that have blocked it. Their jobs wait, so that the jobs of others go on. */
export class SlowPlugins {
  readonly #byId = new Map<string, SlowDown>();

  ran(id: string, tookMs: number, monotonicMs: number): void {
    const known = this.#byId.get(id) ?? new SlowDown();
    known.ran(tookMs, monotonicMs);
    if (known.waitMs(monotonicMs) > 0) this.#byId.set(id, known);
  }

  /** True while jobs of this plugin are not stepped. */
  waits(id: string, monotonicMs: number): boolean {
    const known = this.#byId.get(id);
    if (known === undefined) return false;
    if (known.waitMs(monotonicMs) > 0) return true;
    this.#byId.delete(id);
    return false;
  }
}
