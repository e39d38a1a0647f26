/** Follows how a cluster is: its probe, and how the calls of its watches go. */
import type { Clock } from "../../runtime/clock.ts";
import type { KubeClient } from "./client.ts";
import { type ClusterHealth, type HealthFacts, healthOf } from "./health.ts";
import { Probe } from "./probe.ts";

type Connection = {
  /** Breaks off its call, and calls again at once. */
  readonly reconnect: () => void;
};

type HealthWatchOptions = {
  /** For the probe alone, so that it waits behind nothing. */
  readonly client: Pick<KubeClient, "request">;
  readonly clock: Clock;
  /** Why the server's cluster is a wrong one. Null: it is not. */
  readonly problem: () => string | null;
  readonly watches: readonly (HealthFacts["watches"][number] & Connection)[];
  /** Watches whose failures do not count, such as those of objects that the server may not know. */
  readonly others: readonly Connection[];
  /** How long the calls of a watch may fail, although the probe is answered. */
  readonly graceMs: number;
  /** A hint that the health may have changed. */
  readonly onChange: () => void;
};

export class HealthWatch {
  readonly #options: HealthWatchOptions;
  readonly #probe: Probe;
  #wasActive = true;

  constructor(options: HealthWatchOptions) {
    this.#options = options;
    this.#probe = new Probe({
      client: options.client,
      clock: options.clock,
      isPaused: () => options.problem() !== null,
      onChange: () => {
        this.#reconnect();
        options.onChange();
      },
    });
  }

  start(): void {
    this.#probe.start();
  }

  close(): Promise<void> {
    return this.#probe.close();
  }

  now(): ClusterHealth {
    const { problem, watches, graceMs } = this.#options;
    const facts = { problem: problem(), probe: this.#probe.verdict(), watches };
    const health = healthOf(facts, { wasActive: this.#wasActive, graceMs });
    this.#wasActive = health.kind === "active";
    return health;
  }

  /** For how long this process has asked the server in vain, in milliseconds. */
  silenceMs(): number {
    return this.#probe.silenceMs();
  }

  /**
   * A watch whose packets vanish does not know it, so all connect anew when the server falls silent. They do so again
   * once it answers: some wait to try again, and what was opened meanwhile may lead nowhere.
   */
  #reconnect(): void {
    const { watches, others } = this.#options;
    for (const watch of [...watches, ...others]) watch.reconnect();
  }
}
