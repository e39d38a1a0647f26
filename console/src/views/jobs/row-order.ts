/** Keeps the rows of a list where they are while the list behind them changes. */

export type RowOrder = {
  /** The uids of the rows that are shown, in their places. */
  readonly shown: readonly string[];
  /** How many jobs of the newest list are not shown, because rows would jump. */
  readonly newer: number;
};

export const NO_ROWS: RowOrder = { shown: [], newer: 0 };

/**
 * Places the jobs of a newer list. Jobs behind the last row that is shown are appended: they are the next pages. Others
 * that are not shown are counted. Rows that the list has no more stay until the reader asks for the new list.
 */
export function placed({ shown }: RowOrder, listed: readonly string[]): RowOrder {
  const known = new Set(shown);
  const last = listed.findLastIndex((uid) => known.has(uid));
  if (last < 0) return shown.length === 0 ? { shown: listed, newer: 0 } : { shown, newer: listed.length };
  const appended = listed.slice(last + 1);
  const newer = listed.slice(0, last).filter((uid) => !known.has(uid)).length;
  return { shown: appended.length === 0 ? shown : [...shown, ...appended], newer };
}
