/** The lines of a log that the page keeps: the newest ones, up to a number. */

/** More lines than a person reads; 50,000 of 200 characters take some 20 MB. */
export const LINES_KEPT_MAX = 50_000;

export type ShownLine = {
  /** Grows by 1 with each line. */
  readonly number: number;
  /** Such as Worker/0. Empty: a word of the page itself, about the log. */
  readonly replica: string;
  readonly text: string;
};

export type LogBuffer = {
  readonly lines: readonly ShownLine[];
  /** How many lines came before them and are not kept. */
  readonly dropped: number;
  readonly next: number;
};

export const NO_LINES: LogBuffer = { lines: [], dropped: 0, next: 1 };

export function withLines(
  { lines, dropped, next }: LogBuffer,
  added: readonly Omit<ShownLine, "number">[],
  keptMax = LINES_KEPT_MAX,
): LogBuffer {
  const all = [...lines, ...added.map((line, at) => ({ ...line, number: next + at }))];
  const tooMany = Math.max(0, all.length - keptMax);
  return { lines: all.slice(tooMany), dropped: dropped + tooMany, next: next + added.length };
}

/** The lines that have this text, in any case. */
export function found(lines: readonly ShownLine[], text: string): readonly ShownLine[] {
  if (text === "") return lines;
  const wanted = text.toLowerCase();
  return lines.filter((line) => line.replica === "" || line.text.toLowerCase().includes(wanted));
}
