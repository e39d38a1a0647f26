/** Further doublings change nothing: by then every wait is the longest. */
const DOUBLINGS_MAX = 30;

/** A wait of at least a millisecond at first that doubles each time, up to the longest one. */
export function doublingMs(wait: { readonly firstMs: number; readonly longestMs: number }, times: number): number {
  return Math.min(wait.firstMs * 2 ** Math.min(times, DOUBLINGS_MAX), wait.longestMs);
}
