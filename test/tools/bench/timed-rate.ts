import { callRate, type Rate } from "./measure.ts";

/** A rate with the times of its calls in milliseconds, shortest first. */
export type TimedRate = Rate & { readonly timesMs: Float64Array };

/** Runs a task repeatedly by several callers at a time, and notes how long each run takes. */
export async function timedRate(
  name: string,
  task: (call: number) => Promise<unknown>,
  of: { readonly callers: number; readonly seconds: number },
): Promise<TimedRate> {
  const timesMs: number[] = [];
  const timed = async (call: number) => {
    const startMs = performance.now();
    await task(call);
    timesMs.push(performance.now() - startMs);
  };
  const rate = await callRate(name, timed, of);
  return { ...rate, timesMs: Float64Array.from(timesMs).sort() };
}

/** The median, and the times that 1 and 0.1 per cent of the calls exceed. */
export function timesText(timesMs: Float64Array): string {
  const at = (share: number) => timesMs[Math.min(timesMs.length - 1, Math.floor(timesMs.length * share))] ?? Number.NaN;
  return [0.5, 0.99, 0.999].map((share) => `p${share * 100} ${at(share).toFixed(2)} ms`).join(", ");
}
