/** Lists of indexes as Kubernetes writes them: `0,2-5`. */

import { cutText } from "./cut-text.ts";

/** Indexes from `first` to `last`, both included. */
export type IndexRange = { readonly first: number; readonly last: number };

/** The most characters of such a list. Source: Kubernetes' validation of a success policy. */
export const RANGES_CHARS_MAX = 65_536;

/**
 * Reads such a list. Null: it is none. Ranges must rise, and the last one of each must be above its first. Takes linear
 * time. Source: Kubernetes' `validateIndexesFormat`.
 */
export function readRanges(text: string): readonly IndexRange[] | null {
  if (text === "" || text.length > RANGES_CHARS_MAX) return null;
  const ranges: IndexRange[] = [];
  let next = 0;
  for (const part of text.split(",")) {
    const bounds = part.split("-");
    if (bounds.length > 2 || !bounds.every((one) => /^\d{1,10}$/.test(one))) return null;
    const [first = 0, last = first] = bounds.map(Number);
    if (first < next || (bounds.length === 2 && last <= first)) return null;
    ranges.push({ first, last });
    next = last + 1;
  }
  return ranges;
}

/** Writes rising indexes as Kubernetes does: as ranges from three on. A text that becomes too long is cut. */
export function writeRanges(indexes: readonly number[]): string {
  const parts: string[] = [];
  for (let at = 0; at < indexes.length; ) {
    let end = at;
    while (indexes[end + 1] === (indexes[end] ?? 0) + 1) end += 1;
    if (end - at >= 2) parts.push(`${indexes[at]}-${indexes[end]}`);
    else for (let one = at; one <= end; one++) parts.push(String(indexes[one]));
    at = end + 1;
  }
  return cutText(parts.join(","), RANGES_CHARS_MAX);
}

/** How many indexes the ranges have. */
export function countOf(ranges: readonly IndexRange[]): number {
  return ranges.reduce((sum, { first, last }) => sum + last - first + 1, 0);
}

/** How many of these indexes the ranges have. Both rise. */
export function countWithin(ranges: readonly IndexRange[], indexes: readonly number[]): number {
  let at = 0;
  let count = 0;
  for (const index of indexes) {
    while (at < ranges.length && (ranges[at]?.last ?? 0) < index) at += 1;
    const range = ranges[at];
    if (range === undefined) return count;
    if (index >= range.first) count += 1;
  }
  return count;
}
