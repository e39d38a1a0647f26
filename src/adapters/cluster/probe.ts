/**
 * Asks an API server every few seconds whether it answers, on a connection of its own. Calls of watches and of steps
 * wait behind each other, and where packets vanish, an open watch looks alive for minutes.
 */
import { setImmediate } from "node:timers/promises";
import type { Clock } from "../../runtime/clock.ts";
import { linkedController } from "../../runtime/linked-controller.ts";
import type { KubeClient } from "./client.ts";
import { refusalOf } from "./failure-meaning.ts";
import { readUid } from "./identity.ts";
import type { KubeFailure } from "./kube-failure.ts";

/** How long a probe waits for its answer. */
export const PROBE_MS_MAX = 3_000;
/** A limit that is over so much later than it should be tells of this process, not of the server. */
const LATE_MS = 1_000;
/** While this process was busy, an answer may have come. So many turns of the event loop read it. */
const TURNS = 5;
/** From the beginning of one probe to that of the next. */
const INTERVAL_MS = 5_000;
/** So many probes in a row have to fail: 10 to 18 seconds after the last answer. */
const FAILURES_MIN = 3;

/** The judgement of the last probes. */
export type ProbeVerdict =
  | { readonly kind: "answers" }
  /** No answer, or one that says that the server is not ready. `forMs`: for how long. */
  | { readonly kind: "silent"; readonly forMs: number }
  /** It answers, and does not take this kubeconfig. */
  | { readonly kind: "refuses"; readonly forMs: number; readonly why: string };

type ProbeOptions = {
  readonly client: Pick<KubeClient, "request">;
  readonly clock: Clock;
  /** True: the server is not asked now, because it is a wrong one. */
  readonly isPaused: () => boolean;
  /** Called when the kind of the verdict has changed. */
  readonly onChange: () => void;
};

export class Probe {
  readonly #options: ProbeOptions;
  readonly #closing = new AbortController();
  #running: Promise<void> = Promise.resolve();
  #answeredMs = 0;
  #failuresInRow = 0;
  /** The failure of the last probe. */
  #failure: KubeFailure | null = null;
  /** When the last probe counted, and for how long probes have failed since the last answer. */
  #countedMs = 0;
  #silenceMs = 0;

  constructor(options: ProbeOptions) {
    this.#options = options;
  }

  start(): void {
    this.#answeredMs = this.#options.clock.monotonicMs();
    this.#countedMs = this.#answeredMs;
    this.#running = this.#run(this.#closing.signal);
  }

  async close(): Promise<void> {
    this.#closing.abort();
    await this.#running;
  }

  verdict(): ProbeVerdict {
    if (this.#failure === null || this.#failuresInRow < FAILURES_MIN) return { kind: "answers" };
    const forMs = this.#options.clock.monotonicMs() - this.#answeredMs;
    const why = refusalOf(this.#failure);
    return why === undefined ? { kind: "silent", forMs } : { kind: "refuses", forMs, why };
  }

  /**
   * For how long this process has asked in vain since the last answer, in milliseconds. Time in which it slept or was
   * stopped adds no more than one probe takes.
   */
  silenceMs(): number {
    return this.#silenceMs;
  }

  async #run(signal: AbortSignal): Promise<void> {
    const { clock, isPaused, onChange } = this.#options;
    let nextMs = clock.monotonicMs() + INTERVAL_MS;
    while (!signal.aborted) {
      await clock.sleep(nextMs - clock.monotonicMs(), signal);
      if (signal.aborted) return;
      const startedMs = clock.monotonicMs();
      nextMs = startedMs + INTERVAL_MS;
      if (isPaused()) continue;
      const before = this.verdict().kind;
      const failure = await this.#ask(signal);
      if (signal.aborted) return;
      const wasAsleep = clock.monotonicMs() - startedMs > PROBE_MS_MAX + LATE_MS;
      if (failure !== null && wasAsleep) {
        this.#countedMs = clock.monotonicMs();
        continue;
      }
      this.#take(failure);
      if (this.verdict().kind !== before) onChange();
    }
  }

  #take(failure: KubeFailure | null): void {
    const nowMs = this.#options.clock.monotonicMs();
    const sinceMs = Math.min(nowMs - this.#countedMs, INTERVAL_MS + PROBE_MS_MAX);
    this.#failure = failure;
    this.#failuresInRow = failure === null ? 0 : this.#failuresInRow + 1;
    // A refusal is an answer, too: the server is there.
    this.#silenceMs = failure === null || refusalOf(failure) !== undefined ? 0 : this.#silenceMs + sinceMs;
    this.#countedMs = nowMs;
    if (failure === null) this.#answeredMs = nowMs;
  }

  /** Null: the server answers. */
  async #ask(signal: AbortSignal): Promise<KubeFailure | null> {
    const { client, clock } = this.#options;
    using late = linkedController(signal);
    void clock.sleep(PROBE_MS_MAX, late.signal).then(async () => {
      for (let turn = 0; turn < TURNS; turn += 1) await setImmediate();
      late.abort();
    });
    try {
      return await ask(client, late.signal);
    } finally {
      late.abort();
    }
  }
}

/** Asks once. Null: the server answers. */
async function ask(client: Pick<KubeClient, "request">, signal: AbortSignal): Promise<KubeFailure | null> {
  const ready = await client.request({ method: "GET", path: "/readyz" }, signal);
  if (ready.kind === "ok") return null;
  if (ready.status === 0 || ready.status === 401) return ready;
  // It is forbidden or unknown, or one check of many fails: a namespace tells more.
  const read = await readUid(client, signal);
  return read.kind === "ok" || read.status === 429 ? null : read;
}
