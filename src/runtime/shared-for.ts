/**
 * Calls `read` at most once in each `spanMs`. Calls in between share its answer, but an error only those that came
 * before it.
 */
export function sharedFor<T>(
  spanMs: number,
  read: () => Promise<T>,
  monotonicMs = () => performance.now(),
): () => Promise<T> {
  let last: { readonly atMs: number; readonly answer: Promise<T> } | null = null;
  return () => {
    const nowMs = monotonicMs();
    if (last !== null && nowMs - last.atMs < spanMs) return last.answer;
    const mine = { atMs: nowMs, answer: read() };
    last = mine;
    mine.answer.catch(() => {
      if (last === mine) last = null;
    });
    return mine.answer;
  };
}
