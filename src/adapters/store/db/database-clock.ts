import { type Executor, onlyRow } from "./db.ts";

/** How often the database is asked for its time; the quickest answer is the most exact. */
const ASKS = 3;

/** How far the database's clock is ahead of this machine's, in milliseconds, within half a round trip. */
export async function clockOffsetMs(executor: Executor, nowMs: () => number): Promise<number> {
  let best = { tookMs: Number.POSITIVE_INFINITY, offsetMs: 0 };
  for (let ask = 0; ask < ASKS; ask += 1) {
    const beforeMs = nowMs();
    const { ms } = onlyRow(await executor.query<{ ms: number }>(TIME));
    const tookMs = nowMs() - beforeMs;
    if (tookMs < best.tookMs) best = { tookMs, offsetMs: ms - (beforeMs + tookMs / 2) };
  }
  return Math.round(best.offsetMs);
}

const TIME = "select (extract(epoch from clock_timestamp()) * 1000)::bigint as ms";
