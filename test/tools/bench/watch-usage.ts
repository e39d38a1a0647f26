import { ownCpuMs } from "./cpu-time.ts";
import type { ServerAnswer } from "./watch-orders.ts";

/** What this process has used until now. Collects garbage if the process was started with `--expose-gc`. */
export function usage(encodings: number): ServerAnswer {
  const cpuMs = ownCpuMs();
  global.gc?.();
  const { heapUsed, external, rss } = process.memoryUsage();
  return { kind: "used", cpuMs, cpuAfterMs: ownCpuMs(), keptBytes: heapUsed + external, rssBytes: rss, encodings };
}
