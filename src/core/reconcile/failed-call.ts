import { doublingMs } from "../../runtime/doubling.ts";

const CALL_BACKOFF = { firstMs: 1_000, longestMs: 60_000 };
const MESSAGE_CHARS_MAX = 1_024;

/** What is kept of a call of somebody else's code that failed after so many others: how many these are now, why, and when it is called again. */
export function failedCall(before: number, said: string, nowMs: number) {
  return {
    failedCalls: before + 1,
    lastFailure: said.slice(0, MESSAGE_CHARS_MAX).toWellFormed().replaceAll("\0", ""),
    notBeforeMs: nowMs + doublingMs(CALL_BACKOFF, before),
  };
}
