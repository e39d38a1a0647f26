import { gpusOf } from "./fill.ts";
import type { Packer, Placed } from "./rules.ts";
import type { PackWorld } from "./worlds.ts";

type Running = { readonly placed: Placed; readonly endsAt: number };

/**
 * Gangs run in the order of a strict queue: nobody passes the first. Returns the mean part of the GPUs in use, in
 * percent, from the moment that the first gang has to wait until the queue is empty.
 */
export function churn(packer: Packer, { nodes, gangs }: PackWorld): number {
  const all = gpusOf(nodes);
  const running: Running[] = [];
  let [now, used, sinceFull, area] = [0, 0, Number.NaN, 0];
  for (const gang of gangs) {
    for (;;) {
      const placed = packer.place(gang);
      if (placed !== null) {
        used += gang.pods * gang.gpus;
        insert(running, { placed, endsAt: now + gang.seconds });
        break;
      }
      if (Number.isNaN(sinceFull)) sinceFull = now;
      const first = running.pop();
      if (first === undefined) throw new Error("a gang does not fit the empty nodes");
      area += used * (first.endsAt - now);
      now = first.endsAt;
      packer.remove(first.placed);
      used -= first.placed.gang.pods * first.placed.gang.gpus;
    }
  }
  if (Number.isNaN(sinceFull)) throw new Error(`${gangs.length} gangs are too few: none of them has to wait`);
  return (100 * area) / (all * (now - sinceFull));
}

/** Keeps the list in the order of ends, the last one first. */
function insert(running: Running[], one: Running): void {
  let [low, high] = [0, running.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((running[middle] as Running).endsAt > one.endsAt) low = middle + 1;
    else high = middle;
  }
  running.splice(low, 0, one);
}
