/** Measures what the service's own thread uses: the CPU time of its code, and the memory that lives. */
import { GCProfiler } from "node:v8";
import { PGlite } from "@electric-sql/pglite";
import { yardstick } from "./yardstick.ts";

export type Reading = {
  /** CPU time of the main thread so far, without that of an embedded database. */
  readonly cpuMs: number;
  /** The most memory that lived at the end of a collection since the reading before. */
  readonly peakBytes: number;
};

type RawPGlite = { execProtocolRawSync: (message: Uint8Array) => Uint8Array };

export class Meter {
  #databaseMs = 0;
  #profiler = startedProfiler();
  #cpuUsedMs = 0;

  constructor() {
    // A database in the process uses its thread, and is no code of the service. A server would use its own.
    const prototype = PGlite.prototype as unknown as RawPGlite;
    const exec = prototype.execProtocolRawSync;
    const note = (fromMs: number) => {
      this.#databaseMs += threadMs() - fromMs;
    };
    prototype.execProtocolRawSync = function (this: RawPGlite, message) {
      const fromMs = threadMs();
      try {
        return exec.call(this, message);
      } finally {
        note(fromMs);
      }
    };
  }

  /** The CPU time of the yardstick now. It is not counted. */
  yardstickMs(): number {
    const fromMs = threadMs();
    yardstick();
    const tookMs = threadMs() - fromMs;
    this.#cpuUsedMs += tookMs;
    return tookMs;
  }

  /** What reading itself costs is not counted. */
  read(collect: boolean): Reading {
    const fromMs = threadMs();
    if (collect) globalThis.gc?.();
    const { heapUsed, external } = process.memoryUsage();
    const collections = this.#profiler.stop()?.statistics ?? [];
    this.#profiler = startedProfiler();
    const peakBytes = collections.reduce(
      (most, { afterGC: { heapStatistics } }) =>
        Math.max(most, heapStatistics.usedHeapSize + heapStatistics.externalMemory),
      collect ? heapUsed + external : 0,
    );
    const cpuMs = fromMs - this.#databaseMs - this.#cpuUsedMs;
    this.#cpuUsedMs += threadMs() - fromMs;
    return { cpuMs, peakBytes };
  }
}

function startedProfiler(): GCProfiler {
  const profiler = new GCProfiler();
  profiler.start();
  return profiler;
}

function threadMs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
}
