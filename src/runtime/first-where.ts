/**
 * The first whole number from `low` on for which something holds that then holds for every larger one, or `high` if it
 * holds for none before. Does not ask for `high`.
 */
export function firstWhere(low: number, high: number, holds: (at: number) => boolean): number {
  let [from, to] = [low, high];
  while (from < to) {
    const middle = (from + to) >> 1;
    if (holds(middle)) to = middle;
    else from = middle + 1;
  }
  return from;
}
