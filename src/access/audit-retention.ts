/** Makes room for new entries of the audit log, and removes those that are older than they are kept. */
import type { Clock } from "../runtime/clock.ts";

const LOOK_MS = 3_600_000;

export type RetentionPorts = {
  readonly clock: Pick<Clock, "nowMs" | "sleep">;
  /** Makes the partitions of the coming time, for entries that are kept so long. */
  readonly makePartitions: (keptMs: number) => Promise<void>;
  /** Drops a partition whose entries are all older than the time. False: there is none. */
  readonly dropPartition: (beforeMs: number) => Promise<boolean>;
  /** Deletes some entries before the time that leave with no partition. Returns how many; 0: none is left. */
  readonly prune: (beforeMs: number) => Promise<number>;
  readonly onError: (error: unknown) => void;
};

/** Runs until the signal is aborted. Several processes may run it at the same time. A step that fails is for later. */
export async function keepAudit(ports: RetentionPorts, keptMs: number, signal: AbortSignal): Promise<void> {
  const { clock, makePartitions, dropPartition, prune, onError } = ports;
  const beforeMs = () => clock.nowMs() - keptMs;
  const steps = [
    () => makePartitions(keptMs),
    async () => {
      while (!signal.aborted && (await dropPartition(beforeMs())));
    },
    async () => {
      while (!signal.aborted && (await prune(beforeMs())) > 0);
    },
  ];
  while (!signal.aborted) {
    for (const step of steps) await step().catch(onError);
    await clock.sleep(LOOK_MS, signal);
  }
}
