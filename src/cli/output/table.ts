import { maxOf } from "../../runtime/lists.ts";
import { visibleText } from "./terminal.ts";

/** A column of a table. */
export type Column = {
  readonly title: string;
  readonly align?: "right";
  /** True: an empty cell stays empty. Omitted: it is `-`. */
  readonly isBlank?: boolean;
  /** For tables that print one row at a time: the width that most cells fit. */
  readonly minWidth?: number;
  /** Adds colour to a padded cell. Must not change the visible width. */
  readonly paint?: (cell: string) => string;
};

export type TableOptions = {
  /** Lines are cut to this width. Null: not cut, for a file or a pipe. */
  readonly columns: number | null;
  readonly color: boolean;
};

const GAP = "  ";
/** A last column narrower than this is unreadable: then it is not cut, and lines may wrap. */
const LAST_WIDTH_MIN = 12;

/**
 * Returns the lines of a table, headings first. Empty cells are `-`, unless their column says otherwise. The last
 * column is cut at the edge of the terminal.
 */
export function renderTable(
  columns: readonly Column[],
  rows: readonly (readonly string[])[],
  options: TableOptions,
): string[] {
  const cells = rows.map((row) =>
    columns.map(({ isBlank }, at) => (isBlank && !row[at] ? "" : oneLine(row[at] ?? ""))),
  );
  const widths = columns.map((column, at) =>
    maxOf(
      cells.map((row) => (row[at] ?? "").length),
      Math.max(column.title.length, column.minWidth ?? 0),
    ),
  );
  const last = columns.length - 1;
  const before = widths.slice(0, last).reduce((sum, width) => sum + width + GAP.length, 0);
  if (options.columns !== null && options.columns - before >= LAST_WIDTH_MIN) {
    widths[last] = Math.min(widths[last] ?? 0, options.columns - before);
  }
  const line = (row: readonly string[], isHeading: boolean) =>
    columns
      .map((column, at) => {
        const fitted = fit(row[at] ?? "", widths[at] ?? 0, column.align);
        return options.color && !isHeading && column.paint !== undefined ? column.paint(fitted) : fitted;
      })
      .join(GAP)
      .trimEnd();
  return [
    line(
      columns.map((column) => column.title),
      true,
    ),
    ...cells.map((row) => line(row, false)),
  ];
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
