import { Turns } from "./turns.ts";

/** A caller counts as one that others share the event loop with this long after its last task. */
const SHARED_MS = 1_000;

type Waiting = { readonly key: string; readonly begin: () => void };

export type FairStartPorts = {
  readonly monotonicMs: () => number;
  /** Runs a function in the next pass of the event loop, after input was read. */
  readonly nextPass: (run: () => void) => void;
};

/**
 * Lets tasks begin so that a caller with many of them leaves the event loop to others. While several callers have
 * tasks, each of them begins one in a pass of the event loop, and its others wait for later passes. Tasks of a caller
 * that is alone begin at once.
 */
export class FairStart {
  readonly #ports: FairStartPorts;
  readonly #waiting = new Turns<Waiting>();
  /** The callers that have begun a task in this pass. */
  readonly #begun = new Set<string>();
  #last = { key: "", atMs: Number.NEGATIVE_INFINITY };
  /** When a caller other than the last one had a task. */
  #otherMs = Number.NEGATIVE_INFINITY;
  #passes = false;

  constructor(ports: FairStartPorts) {
    this.#ports = ports;
  }

  /** Null: a task of this caller may begin now. Else it may begin when the promise is resolved. */
  turn(key: string): Promise<void> | null {
    if (!this.#isShared(key) && this.#waiting.size === 0) return null;
    this.#keepPassing();
    if (!this.#begun.has(key)) {
      this.#begun.add(key);
      return null;
    }
    return new Promise((begin) => this.#waiting.add(key, { key, begin }));
  }

  /** Notes a task. True: another caller has had one lately. */
  #isShared(key: string): boolean {
    const nowMs = this.#ports.monotonicMs();
    if (key !== this.#last.key) this.#otherMs = this.#last.atMs;
    this.#last = { key, atMs: nowMs };
    return nowMs - this.#otherMs < SHARED_MS;
  }

  #keepPassing(): void {
    if (this.#passes) return;
    this.#passes = true;
    this.#ports.nextPass(() => this.#pass());
  }

  #pass(): void {
    this.#passes = false;
    this.#begun.clear();
    for (;;) {
      const next = this.#waiting.next(({ key }) => !this.#begun.has(key));
      if (next === null) break;
      this.#begun.add(next.key);
      next.begin();
    }
    if (this.#begun.size > 0) this.#keepPassing();
  }
}
