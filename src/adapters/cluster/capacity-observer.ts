import type { EntryKey } from "../../core/plan/model/capacity-entry.ts";
import type { Clock } from "../../runtime/clock.ts";
import { CapacityChanges, type CapacityPart, type CapacitySource } from "./capacity-changes.ts";
import type { ClusterHealth } from "./health.ts";

/** A report of a cluster's capacity. */
export type CapacityReport = { readonly cluster: string } & (
  | ({ readonly reachable: true } & CapacityPart)
  /** It does not answer, or cannot be used. `sinceMs`: since when. `unusable`: why it cannot be used; null: it may. */
  | { readonly reachable: false; readonly sinceMs: number; readonly unusable: string | null }
);

type ObserverOptions = {
  readonly cluster: string;
  readonly clock: Clock;
  /** The shortest time between two reports. */
  readonly intervalMsMin: number;
  readonly source: CapacitySource;
  readonly health: () => ClusterHealth;
  /** False while another process reports. The first report after that is complete. */
  readonly reports: () => boolean;
  /**
   * Records a report. Returns the epoch of the complete report that counts now; null if this one was not recorded.
   * After that, and after an error, a complete report follows some time later.
   */
  readonly onCapacity: (report: CapacityReport) => Promise<number | null>;
  readonly onError: (error: unknown, what: string) => void;
};

/** How often the health is judged while nothing changes, and the wait after a report that was not recorded. */
const IDLE_MS = 1_000;

/** The largest part of the time that reports may take. */
const SHARE_MAX = 0.1;

/** Turns changes of nodes and pods into reports of the cluster's capacity, at most a few a second. */
export class CapacityObserver {
  readonly #options: ObserverOptions;
  readonly #changes: CapacityChanges;
  #dirty = false;
  /** The `healthKey` of the last record. Empty: nothing was recorded. */
  #recorded = "";
  #wake = new AbortController();
  #closed = false;
  #running: Promise<void> = Promise.resolve();

  constructor(options: ObserverOptions) {
    this.#options = options;
    this.#changes = new CapacityChanges(options.source);
  }

  start(): void {
    this.#running = this.#run();
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#wake.abort();
    await this.#running;
  }

  /** Notes that an entry may have changed. Omitted: none did, but the health of the watches. */
  changed(key?: EntryKey): void {
    if (key !== undefined) this.#changes.mark(key);
    if (this.#dirty) return;
    this.#dirty = true;
    this.#wake.abort();
  }

  /** Makes the next report complete, although nothing may have changed. */
  restart(): void {
    this.#changes.restart();
    this.changed();
  }

  async #run(): Promise<void> {
    const { clock, intervalMsMin } = this.#options;
    while (!this.#closed) {
      if (!this.#dirty) await clock.sleep(IDLE_MS, this.#wake.signal);
      if (this.#closed) return;
      this.#wake = new AbortController();
      const startedMs = clock.monotonicMs();
      const taken = await this.#report();
      const tookMs = clock.monotonicMs() - startedMs;
      await this.#pause(taken ? Math.max(intervalMsMin, tookMs / SHARE_MAX) : IDLE_MS);
    }
  }

  /** Sleeps the whole time whatever changes, but ends when the observer is closed. */
  async #pause(delayMs: number): Promise<void> {
    const { clock } = this.#options;
    const untilMs = clock.monotonicMs() + delayMs;
    while (!this.#closed) {
      const leftMs = untilMs - clock.monotonicMs();
      if (leftMs <= 0) return;
      const wake = new AbortController();
      this.#wake = wake;
      await clock.sleep(leftMs, wake.signal);
    }
  }

  /** Reports if there is news. False: the report was not recorded and is due again. */
  async #report(): Promise<boolean> {
    const { cluster, clock, reports, onCapacity, onError } = this.#options;
    const health = this.#options.health();
    if (!this.#dirty && healthKey(health) === this.#recorded) return true;
    if (!reports()) {
      this.#changes.restart();
      return false;
    }
    try {
      if (health.kind !== "active") {
        this.#dirty = false;
        const sinceMs = Math.round(clock.nowMs() - health.forMs);
        const unusable = health.kind === "unusable" ? health.why : null;
        await onCapacity({ cluster, reachable: false, sinceMs, unusable });
        this.#recorded = healthKey(health);
        return true;
      }
      return await this.#reportPart();
    } catch (error) {
      this.#changes.restart();
      this.#dirty = true;
      onError(error, `capacity of cluster ${cluster}`);
      return false;
    }
  }

  async #reportPart(): Promise<boolean> {
    const { cluster, onCapacity } = this.#options;
    const part = this.#changes.next();
    if (part === null) return true;
    this.#dirty = false;
    if (part.since !== null && part.changes.length === 0 && this.#recorded === ACTIVE) return true;
    const epoch = await onCapacity({ cluster, reachable: true, ...part });
    this.#changes.recorded(epoch);
    this.#dirty ||= epoch === null;
    this.#recorded = epoch === null ? "" : ACTIVE;
    return epoch !== null;
  }
}

const ACTIVE = "active";

/** Equal keys: the record says the same. */
function healthKey(health: ClusterHealth): string {
  return health.kind === "unusable" ? `unusable: ${health.why}` : health.kind;
}
