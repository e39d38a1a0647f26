/**
 * Lists of any length. A call such as `push(...items)` passes each item as an argument, and fails with a RangeError
 * beyond some 100,000 of them.
 */

/** Adds items at the end of a list. */
export function append<T>(list: T[], items: Iterable<T>): void {
  for (const item of items) list.push(item);
}

/** The greatest of the numbers, and of `least`. Omitted: minus infinity. */
export function maxOf(numbers: Iterable<number>, least = Number.NEGATIVE_INFINITY): number {
  let most = least;
  for (const number of numbers) most = Math.max(most, number);
  return most;
}

/** The least of the numbers, and of `most`. Omitted: infinity. */
export function minOf(numbers: Iterable<number>, most = Number.POSITIVE_INFINITY): number {
  let least = most;
  for (const number of numbers) least = Math.min(least, number);
  return least;
}
