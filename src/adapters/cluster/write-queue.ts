/** The writes to one cluster: at most as many at a time as it bears, deletes before creates. */
import type { Clock } from "../../runtime/clock.ts";
import type { KubeRequest, KubeResult } from "./client.ts";
import { type WriteEnd, WriteLimit } from "./write-limit.ts";

/** The figures of a cluster's writes, for metrics. */
export type WriteFacts = {
  readonly limit: number;
  readonly inFlight: number;
  readonly waiting: number;
};

/** Statuses of a server that has too much to do. */
const OVERLOADED = [429, 503, 504];

type WriteQueueOptions = {
  readonly clock: Clock;
  readonly writesMax: number;
  /** Called with each write that the server throttles, or answers too late. */
  readonly onThrottled?: (() => void) | undefined;
};

/** Whatever a server says, so many writes may be under way: else a throttled cluster would never recover. */
const WRITES_MIN = 2;

/** Called once the write may begin, with what its end needs. */
type Waiting = (begun: number) => void;

export class WriteQueue {
  readonly #clock: Clock;
  readonly #onThrottled: () => void;
  readonly #limit: WriteLimit;
  /** Deletes free tokens, so they go first. */
  readonly #deletes: Waiting[] = [];
  readonly #others: Waiting[] = [];
  /** The server has asked to be left alone until then. Deletes go on. */
  #heldUntilMs = Number.NEGATIVE_INFINITY;
  #isAlarmSet = false;
  readonly #closing = new AbortController();

  constructor({ clock, writesMax, onThrottled = () => undefined }: WriteQueueOptions) {
    this.#clock = clock;
    this.#onThrottled = onThrottled;
    this.#limit = new WriteLimit({ min: Math.min(WRITES_MIN, writesMax), max: writesMax }, clock.monotonicMs());
  }

  /** Sends a write once there is room for it. */
  async run(method: KubeRequest["method"], send: () => Promise<KubeResult>): Promise<KubeResult> {
    const begun = await new Promise<number>((resolve) => {
      (method === "DELETE" ? this.#deletes : this.#others).push(resolve);
      this.#fill();
    });
    const startedMs = this.#clock.monotonicMs();
    let result: KubeResult | null = null;
    try {
      result = await send();
      return result;
    } finally {
      this.#ended(result, { begun, tookMs: this.#clock.monotonicMs() - startedMs });
    }
  }

  /** Lets every write that waits go at once: the client has ended, so they fail. */
  close(): void {
    this.#closing.abort();
    this.#fill();
  }

  facts(): WriteFacts {
    const { limit, inFlight } = this.#limit;
    return { limit, inFlight, waiting: this.#deletes.length + this.#others.length };
  }

  #ended(result: KubeResult | null, { begun, tookMs }: { readonly begun: number; readonly tookMs: number }): void {
    const nowMs = this.#clock.monotonicMs();
    const end = endOf(result, tookMs);
    if (end?.overloaded) this.#onThrottled();
    if (result?.kind === "failed" && result.retryAfterMs !== null) {
      this.#heldUntilMs = Math.max(this.#heldUntilMs, nowMs + result.retryAfterMs);
    }
    this.#limit.end(end, { begun, nowMs });
    this.#fill();
  }

  #fill(): void {
    while (this.#closing.signal.aborted || this.#limit.inFlight < this.#limit.limit) {
      const next = this.#deletes.shift() ?? this.#nextOther();
      if (next === undefined) return;
      next(this.#limit.begin());
    }
  }

  #nextOther(): Waiting | undefined {
    const heldMs = this.#heldUntilMs - this.#clock.monotonicMs();
    if (heldMs <= 0 || this.#closing.signal.aborted) return this.#others.shift();
    if (this.#others.length > 0) this.#setAlarm(heldMs);
    return undefined;
  }

  #setAlarm(delayMs: number): void {
    if (this.#isAlarmSet) return;
    this.#isAlarmSet = true;
    void this.#clock.sleep(delayMs, this.#closing.signal).then(() => {
      this.#isAlarmSet = false;
      this.#fill();
    });
  }
}

/** Null: the server was not reached. */
function endOf(result: KubeResult | null, tookMs: number): WriteEnd | null {
  if (result === null) return null;
  if (result.kind === "ok") return { tookMs, overloaded: false };
  const { status, code = "" } = result;
  if (status === 0) return code.includes("TIMEOUT") ? { tookMs, overloaded: true } : null;
  return { tookMs, overloaded: OVERLOADED.includes(status) };
}
