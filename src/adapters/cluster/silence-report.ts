/** Tells for how long the process that observes a cluster has waited in vain. Others tell nothing. */
import type { Clock } from "../../runtime/clock.ts";
import type { ClusterHealth } from "./health.ts";

type SilenceReportOptions = {
  readonly cluster: string;
  readonly clock: Clock;
  readonly health: () => ClusterHealth;
  /** For how long this process has asked the cluster in vain, since its last answer. */
  readonly silenceMs: () => number;
  /** False while another process observes the cluster. */
  readonly observes: () => boolean;
  /**
   * Adds the milliseconds that the observer has waited in vain since its last report. False: they were not counted, so
   * the next report has them too.
   */
  readonly onSilence: (ms: number) => Promise<boolean>;
  readonly onError: (error: unknown, what: string) => void;
};

/** From one report to the next. A cluster counts as lost so much later at most. */
const REPORT_MS = 2_000;

export class SilenceReport {
  readonly #options: SilenceReportOptions;
  readonly #closing = new AbortController();
  #running: Promise<void> = Promise.resolve();
  /** The silence that was told already, or is not ours to tell. */
  #toldMs = 0;

  constructor(options: SilenceReportOptions) {
    this.#options = options;
  }

  start(): void {
    this.#running = this.#run(this.#closing.signal);
  }

  async close(): Promise<void> {
    this.#closing.abort();
    await this.#running;
  }

  async #run(signal: AbortSignal): Promise<void> {
    const { cluster, clock, onError } = this.#options;
    while (!signal.aborted) {
      await clock.sleep(REPORT_MS, signal);
      if (signal.aborted) return;
      await this.#tell().catch((error: unknown) => onError(error, `silence of cluster ${cluster}`));
    }
  }

  async #tell(): Promise<void> {
    const { health, silenceMs, observes, onSilence } = this.#options;
    const totalMs = silenceMs();
    // After an answer it begins anew.
    this.#toldMs = observes() ? Math.min(this.#toldMs, totalMs) : totalMs;
    const freshMs = Math.round(totalMs - this.#toldMs);
    if (health().kind !== "unreachable" || freshMs === 0) return;
    if (await onSilence(freshMs)) this.#toldMs = totalMs;
  }
}
