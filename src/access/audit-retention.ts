/** Deletes entries of the audit log that are older than they are kept. */
import type { Clock } from "../runtime/clock.ts";

const LOOK_MS = 3_600_000;

export type RetentionPorts = {
  readonly clock: Pick<Clock, "nowMs" | "sleep">;
  /** Deletes some of the oldest entries before the time. Returns how many; 0: none is left. */
  readonly prune: (beforeMs: number) => Promise<number>;
  readonly onError: (error: unknown) => void;
};

/** Runs until the signal is aborted. Several processes may run it at the same time. */
export async function keepAudit(ports: RetentionPorts, keptMs: number, signal: AbortSignal): Promise<void> {
  const { clock, prune, onError } = ports;
  while (!signal.aborted) {
    try {
      while (!signal.aborted && (await prune(clock.nowMs() - keptMs)) > 0);
    } catch (error) {
      onError(error);
    }
    await clock.sleep(LOOK_MS, signal);
  }
}
