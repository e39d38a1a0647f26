import { RoundStopped } from "../core/plan/model/round-bounds.ts";
import type { PlannerPorts } from "./ports.ts";

/** The time between two comparisons of the state with the store. After a long one it is longer. */
const CHECK_EVERY_MS = 300_000;
const CHECK_SHARE = 100;

/** Begins a comparison from time to time. Rounds do not wait for it. */
export class StateChecks {
  readonly #ports: Pick<PlannerPorts, "clock" | "fleet" | "onChecked">;
  readonly #onError: (error: unknown) => void;
  #nextMs: number;
  #runs = false;

  constructor(ports: Pick<PlannerPorts, "clock" | "fleet" | "onChecked">, onError: (error: unknown) => void) {
    this.#ports = ports;
    this.#onError = onError;
    this.#nextMs = ports.clock.monotonicMs() + CHECK_EVERY_MS;
  }

  begin(): void {
    if (this.#runs || this.#ports.clock.monotonicMs() < this.#nextMs) return;
    this.#runs = true;
    void this.#run();
  }

  async #run(): Promise<void> {
    const { clock, fleet, onChecked } = this.#ports;
    const startedMs = clock.monotonicMs();
    try {
      const found = await fleet.check();
      onChecked?.({ ...found, tookMs: clock.monotonicMs() - startedMs });
    } catch (error) {
      if (!(error instanceof RoundStopped)) this.#onError(error);
    }
    const endedMs = clock.monotonicMs();
    this.#nextMs = endedMs + Math.max(CHECK_EVERY_MS, CHECK_SHARE * (endedMs - startedMs));
    this.#runs = false;
  }
}
