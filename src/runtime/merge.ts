/**
 * Yields the items of several sources as they come, in order within each source. Holds at most one item of each source,
 * so that a slow reader slows all sources. Ends when all sources have ended; throws what the first of them throws. A
 * reader that leaves early must end waiting sources by a signal of its own.
 */
export async function* merge<T>(sources: readonly AsyncIterable<T>[]): AsyncGenerator<T> {
  const ready: { readonly value: T; readonly taken: () => void }[] = [];
  let running = sources.length;
  let failure: { readonly error: unknown } | null = null;
  let left = false;
  let wake = () => {};
  const offer = (value: T) =>
    new Promise<void>((taken) => {
      ready.push({ value, taken });
      wake();
    });
  const pump = async (source: AsyncIterable<T>) => {
    try {
      for await (const value of source) {
        if (!left) await offer(value);
        if (left) return;
      }
    } catch (error) {
      failure ??= { error };
    } finally {
      running -= 1;
      wake();
    }
  };
  for (const source of sources) void pump(source);
  try {
    for (;;) {
      const item = ready.shift();
      if (item !== undefined) {
        yield item.value;
        item.taken();
      } else if (failure !== null) throw (failure as { readonly error: unknown }).error;
      else if (running === 0) return;
      else await new Promise<void>((resolve) => (wake = resolve));
    }
  } finally {
    left = true;
    for (const { taken } of ready) taken();
  }
}
