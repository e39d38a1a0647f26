import type { Clock } from "./clock.ts";

/**
 * Aborts a controller after a time, unless it is aborted before. Null: never. Returns a function that says whether the
 * time was over first.
 */
export function abortAfter(
  clock: Pick<Clock, "sleep">,
  ms: number | null,
  controller: Pick<AbortController, "abort" | "signal">,
): () => boolean {
  let wasFirst = false;
  if (ms !== null) {
    void clock.sleep(ms, controller.signal).then(() => {
      wasFirst = !controller.signal.aborted;
      controller.abort();
    });
  }
  return () => wasFirst;
}
