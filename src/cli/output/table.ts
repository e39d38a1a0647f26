import { maxOf } from "../../runtime/lists.ts";
import { visibleText } from "../../runtime/visible-text.ts";

/** A column of a table. */
export type Column = {
  readonly title: string;
  readonly align?: "right";
  /** True: an empty cell stays empty. Omitted: it is `-`. */
  readonly isBlank?: boolean;
  /** For tables that print one row at a time: the width that most cells fit. */
  readonly minWidth?: number;
  /** In a terminal that is too narrow, the columns with the highest numbers go first. Omitted: the column stays. */
  readonly drop?: number;
  /** Adds colour to a padded cell. Must not change the visible width. */
  readonly paint?: (cell: string) => string;
};

export type TableOptions = {
  /** Lines are cut to this width. Null: not cut, for a file or a pipe. */
  readonly columns: number | null;
  readonly color: boolean;
};

const GAP = 2;
/** Columns go until the last one, which has the most text, has this much room. */
const LAST_WIDTH_MIN = 20;

/**
 * Returns the lines of a table, headings first. Empty cells are `-`, unless their column says otherwise. In a terminal
 * no line is wider than it: columns are left out that may be, then the last column is cut, then the widest ones.
 */
export function renderTable(
  columns: readonly Column[],
  rows: readonly (readonly string[])[],
  { columns: width, color }: TableOptions,
): string[] {
  const cells = rows.map((row) =>
    columns.map(({ isBlank }, at) => (isBlank && !row[at] ? "" : oneLine(row[at] ?? ""))),
  );
  const natural = columns.map((column, at) =>
    maxOf(
      cells.map((row) => (row[at] ?? "").length),
      Math.max(column.title.length, column.minWidth ?? 0),
    ),
  );
  const kept = columnsThatFit(columns, natural, width);
  const widths = widthsThatFit(
    kept.map((at) => natural[at] ?? 0),
    width,
  );
  const line = (row: readonly string[], isHeading: boolean) =>
    kept
      .map((at, place) => {
        const { align, paint } = columns[at] ?? {};
        const fitted = fit(row[at] ?? "", widths[place] ?? 0, align);
        return color && !isHeading && paint !== undefined ? paint(fitted) : fitted;
      })
      .join(" ".repeat(GAP))
      .trimEnd();
  return [
    line(
      columns.map((column) => column.title),
      true,
    ),
    ...cells.map((row) => line(row, false)),
  ];
}

/** The columns of a table whose rows are printed at different times: those that fit by their `minWidth`. */
export function columnsOfWatch<C extends Column>(columns: readonly C[], width: number | null): readonly C[] {
  const widths = columns.map(({ title, minWidth = 0 }) => Math.max(title.length, minWidth));
  widths[columns.length - 1] = LAST_WIDTH_MIN;
  return columnsThatFit(columns, widths, width).flatMap((at) => columns[at] ?? []);
}

/** The places of the columns that a terminal of this width shows. */
function columnsThatFit(
  columns: readonly Column[],
  natural: readonly number[],
  width: number | null,
): readonly number[] {
  const kept = [...columns.keys()];
  if (width === null) return kept;
  const last = columns.length - 1;
  const needed = () =>
    widthOf(kept.map((at) => (at === last ? Math.min(natural[at] ?? 0, LAST_WIDTH_MIN) : (natural[at] ?? 0))));
  while (needed() > width) {
    const next = kept.reduce((one, at) => ((columns[at]?.drop ?? 0) > (columns[one]?.drop ?? 0) ? at : one), last);
    if (columns[next]?.drop === undefined) break;
    kept.splice(kept.indexOf(next), 1);
  }
  // Each column needs a character and its gap.
  return kept.slice(0, Math.max(1, Math.floor((width + GAP) / (1 + GAP))));
}

/** Cuts the last column down to its least width, then always the widest one. */
function widthsThatFit(natural: readonly number[], width: number | null): readonly number[] {
  if (width === null) return natural;
  const widths = [...natural];
  const last = widths.length - 1;
  const most = widths[last] ?? 0;
  const over = () => widthOf(widths) - width;
  widths[last] = Math.max(most - Math.max(0, over()), Math.min(most, LAST_WIDTH_MIN));
  while (over() > 0) {
    const widest = widths.reduce((one, size, at) => (size > (widths[one] ?? 0) ? at : one), 0);
    if ((widths[widest] ?? 0) <= 1) break;
    widths[widest] = (widths[widest] ?? 0) - 1;
  }
  return widths;
}

function widthOf(widths: readonly number[]): number {
  return widths.reduce((sum, width) => sum + width, GAP * (widths.length - 1));
}

function fit(cell: string, width: number, align: "right" | undefined): string {
  if (cell.length > width) return `${cell.slice(0, Math.max(0, width - 1))}…`;
  return align === "right" ? cell.padStart(width) : cell.padEnd(width);
}

/** Returns text of others as one line that cannot control the terminal. */
export function oneLine(text: string): string {
  const clean = visibleText(text.replaceAll(/\s+/g, " ")).trim();
  return clean === "" ? "-" : clean;
}
