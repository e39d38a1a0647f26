/** After this many doublings, every wait is the longest one. */
const DOUBLINGS_MAX = 30;

/** A wait that begins with at least a millisecond and doubles each time, up to the longest one. */
export function doublingMs(wait: { readonly firstMs: number; readonly longestMs: number }, times: number): number {
  return Math.min(wait.firstMs * 2 ** Math.min(times, DOUBLINGS_MAX), wait.longestMs);
}
