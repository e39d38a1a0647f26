import { compareText } from "../../../runtime/compare-text.ts";
import { firstWhere } from "../../../runtime/first-where.ts";
import type { PlanGang } from "../plan-gang.ts";

type OrderedEntry = { readonly gang: Pick<PlanGang, "uid" | "priority" | "createTimeMs"> };

/** The order of gangs by their own priorities: the higher one first, then age, then uid. */
export function compareEntries(a: OrderedEntry, b: OrderedEntry): number {
  return b.gang.priority - a.gang.priority || compareAges(a, b);
}

/** A gang, and its priority in the order of admission: the effective one, or its own. */
export type Ranked = { readonly rank: number; readonly entry: OrderedEntry };

/** The order of admission: higher effective priority first, then age, then uid. */
export function compareRanked(a: Ranked, b: Ranked): number {
  return b.rank - a.rank || compareAges(a.entry, b.entry);
}

/** The order of two gangs of equal priority: the older one first, then uid. */
export function compareAges({ gang: a }: OrderedEntry, { gang: b }: OrderedEntry): number {
  return a.createTimeMs - b.createTimeMs || compareText(a.uid, b.uid);
}

/** Puts an entry at its place in a sorted list. */
export function insertEntry<E extends OrderedEntry>(sorted: E[], entry: E): void {
  sorted.splice(placeOf(sorted, entry), 0, entry);
}

/** Takes an entry out of a sorted list, if it is there. */
export function removeEntry<E extends OrderedEntry>(sorted: E[], entry: E): void {
  const at = placeOf(sorted, entry);
  if (sorted[at] === entry) sorted.splice(at, 1);
}

/** The first place whose entry does not come before this one. */
function placeOf(sorted: readonly OrderedEntry[], entry: OrderedEntry): number {
  return firstWhere(0, sorted.length, (at) => compareEntries(sorted[at] as OrderedEntry, entry) >= 0);
}
