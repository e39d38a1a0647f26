/** Compares what a process uses at two checkpoints, at both of which nothing is left to do. */
import type { Footprint } from "./monitor.ts";

/** Caches and compiled code vary by so much between two checkpoints of a service that leaks nothing. */
const HEAP_BYTES_MAX = 40 * 2 ** 20;
/** Connections of callers come and go. */
const HANDLES_MAX = 30;

/** Everything that has grown by more than it may. */
export function growth(first: Footprint, now: Footprint): readonly string[] {
  const grown: string[] = [];
  const heap = now.heapBytes - first.heapBytes;
  if (heap > HEAP_BYTES_MAX)
    grown.push(`the heap has grown by ${Math.round(heap / 2 ** 20)} MiB since the first checkpoint`);
  for (const [kind, count] of Object.entries(now.handles)) {
    const more = count - (first.handles[kind] ?? 0);
    if (more > HANDLES_MAX) grown.push(`there are ${more} more handles of kind ${kind} than at the first checkpoint`);
  }
  return grown;
}
