import type { Clock } from "../runtime/clock.ts";
import type { Telemetry } from "../telemetry/events.ts";

const SAY_AGAIN_MS = 3_600_000;

/** Says now and every hour what calls from other machines lack, because a trial is easily forgotten. */
export async function sayInsecure(
  facts: Parameters<Telemetry["servedInsecurely"]>[0],
  {
    clock,
    telemetry,
  }: { readonly clock: Pick<Clock, "sleep">; readonly telemetry: Pick<Telemetry, "servedInsecurely"> },
  signal: AbortSignal,
): Promise<void> {
  while (!signal.aborted) {
    telemetry.servedInsecurely(facts);
    await clock.sleep(SAY_AGAIN_MS, signal);
  }
}
