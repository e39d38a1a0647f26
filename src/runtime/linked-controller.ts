/** A controller that also follows other signals. Disposing of it ends that, and aborts nothing. */
export type LinkedController = AbortController & Disposable;

/**
 * A controller that is aborted with the first of these signals, or by itself. It keeps one listener on each source, and
 * removes all of them once it is aborted or disposed of.
 *
 * `AbortSignal.any` holds its sources weakly and asks them only when it has a listener: a source that was aborted and
 * collected before then never aborts it. Then a stream never ends, and neither does the process.
 */
export function linkedController(...sources: readonly AbortSignal[]): LinkedController {
  const controller = new AbortController();
  const follow = () => {
    unlink();
    controller.abort(sources.find(({ aborted }) => aborted)?.reason);
  };
  const unlink = () => {
    for (const source of sources) source.removeEventListener("abort", follow);
  };
  for (const source of sources) source.addEventListener("abort", follow, { once: true });
  controller.signal.addEventListener("abort", unlink, { once: true });
  if (sources.some(({ aborted }) => aborted)) follow();
  return Object.assign(controller, { [Symbol.dispose]: unlink });
}
