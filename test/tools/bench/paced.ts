import { setTimeout as sleep } from "node:timers/promises";

const TICK_MS = 5;

/**
 * Calls `act` so many times a second, evenly. False from `act` ends the turn: what is due is tried again in the next
 * one.
 */
export async function paced(
  { perSecond, seconds }: { readonly perSecond: number; readonly seconds: number },
  act: () => boolean,
): Promise<void> {
  const startMs = performance.now();
  const wanted = Math.max(1, Math.round(perSecond * seconds));
  for (let done = 0; done < wanted; ) {
    const due = Math.min(wanted, ((performance.now() - startMs) * perSecond) / 1000);
    while (done < due && act()) done += 1;
    await sleep(TICK_MS);
  }
}
